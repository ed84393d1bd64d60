"""Merges small segments of streamed partitions in a separate lane, at a limited rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from uuid import UUID

from rlm.policy.stream.merging import SegmentMerge
from rlm.policy.view import AttemptFailure
from rlm.status.failures import cause_of
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import (
    AttemptContext,
    AttemptKind,
    AttemptLanes,
    AttemptRunner,
)
from rlm.tasks.copying.merger import MergeOrder, Merger
from rlm.tasks.copying.stored_parts import UnreadablePart, UnreadablePartsError
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.epochs import Lineage
from rsm.segment.errors import FencedError, UnsupportedError
from rsm.segment.metadata import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merging:
    """Represents the next merge of a partition."""

    lanes: MergeLanes
    task: PartitionTask
    merge: SegmentMerge
    lineage: Lineage

    @property
    def base_offset(self) -> int:
        return self.merge.offsets.start_offset

    @property
    def facts(self) -> Mapping[str, object]:
        return {
            "base_offset": self.base_offset,
            "end_offset": self.merge.offsets.end_offset,
            "bytes": self.merge.size_bytes,
            "segments": len(self.merge.parts),
        }

    @property
    def timeout_ms(self) -> int:
        return self.lanes.context.timeout_ms(self.merge.size_bytes)

    def copy(self, segment_id: UUID) -> RemoteLogSegmentMetadata:
        return self.lanes.run(self.task, self.merge, self.lineage, segment_id)

    def give_up(self) -> None:
        """Do nothing: the next cycle decides again."""

    def following(self) -> None:
        """Return None: the next cycle decides, after the merged segments are deleted."""


class MergeLanes(AttemptLanes):
    """Merges segments of all led partitions, one merge per partition at a time. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        context: AttemptContext,
        *,
        executor: Executor,
    ) -> None:
        """Read the store in `executor`."""
        self._attempts = AttemptRunner(ports, context, kind=AttemptKind.MERGE)
        self._merger = Merger(
            ports,
            executor,
            context.throttle,
            custom_metadata_max_bytes=context.custom_metadata_max_bytes,
        )
        self.context = context

    def offer(self, task: PartitionTask, merge: SegmentMerge, lineage: Lineage) -> bool:
        """Queue a merge, unless the partition is busy or its history forbids it."""
        return self._attempts.offer(_Merging(lanes=self, task=task, merge=merge, lineage=lineage))

    def run(
        self, task: PartitionTask, merge: SegmentMerge, lineage: Lineage, segment_id: UUID
    ) -> RemoteLogSegmentMetadata:
        """Merge segments into one under a new id. Raises the errors of `Merger.merge`.

        Also raises FencedError if the partition may no longer be streamed: a merge may wait long
        for its slot, and the parts could then stay next to the merged segment.
        """
        if task.streaming.permit is None:
            raise FencedError(
                "cannot merge: the partition may no longer be streamed", offsets=merge.offsets
            )
        order = MergeOrder(
            lead=task.lead,
            segment_id=segment_id,
            merge=merge,
            lineage=lineage,
            timeout_ms=self.context.timeout_ms(merge.size_bytes),
            stopping=self.context.stopping.is_set,
            leads=lambda: task.leads,
        )
        try:
            merged = self._merger.merge(order)
        except UnreadablePartsError as error:
            task.unsupported = {**task.unsupported, **_unsupported(error.parts)}
            raise
        topic = task.topic_id_partition.topic
        self.context.metrics.merged_segments.labels(topic).inc(len(merge.parts))
        return merged


def _unsupported(parts: Iterable[UnreadablePart]) -> Mapping[UUID, AttemptFailure]:
    """Return the parts that this process can never read. The merger reports others as damaged."""
    return {
        part.metadata.segment_id.id: AttemptFailure(
            error=str(part.error),
            cause=cause_of(part.error),
            is_corrupt=False,
            attempts=1,
            is_final=True,
        )
        for part in parts
        if isinstance(part.error, UnsupportedError)
    }
