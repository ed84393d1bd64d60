"""Merges small segments of streamed partitions in a lane of their own, at a limited rate."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Event
from uuid import UUID

from rlm.metrics.metrics import Metrics
from rlm.policy.stream.merging import SegmentMerge
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import AttemptingLanes, AttemptKind, AttemptLanes
from rlm.tasks.copying.copy_lane import CopyLimits
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.copying.merger import MergeOrder, Merger
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.epochs import Lineage
from rsm.segment.errors import FencedError
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
        return self.lanes.timeout_ms(self.merge.size_bytes)

    def copy(self, segment_id: UUID) -> RemoteLogSegmentMetadata:
        return self.lanes.run(self.task, self.merge, self.lineage, segment_id)

    def given_up(self) -> None:
        """Leave it to the next cycle, which decides again."""

    def following(self) -> None:
        """The next cycle decides: the parts are deleted first."""


class MergeLanes(AttemptingLanes):
    """Merges segments of all led partitions, one merge per partition at a time. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        executor: Executor,
        metrics: Metrics,
        stopping: Event,
        limits: CopyLimits,
        throttle: CopyThrottle | None = None,
    ) -> None:
        """Read the store in `executor`; merge without a rate limit if `throttle` is None."""
        self._attempts = AttemptLanes(
            ports,
            lanes=lanes,
            metrics=metrics,
            stopping=stopping,
            first_pause_ms=limits.first_pause_ms,
            kind=AttemptKind.MERGE,
        )
        self._merger = Merger(
            ports,
            executor,
            throttle,
            custom_metadata_max_bytes=limits.custom_metadata_max_bytes,
        )
        self._metrics = metrics
        self._throttle = throttle
        self._stopping = stopping
        self._attempt_timeout_ms = limits.attempt_timeout_ms

    def offer(self, task: PartitionTask, merge: SegmentMerge, lineage: Lineage) -> bool:
        """Queue a merge, unless the partition is busy or its history forbids it."""
        return self._attempts.offer(_Merging(lanes=self, task=task, merge=merge, lineage=lineage))

    def timeout_ms(self, size_bytes: int) -> int:
        """Return an attempt's time limit, with the delays of the throttle."""
        waits_ms = 0 if self._throttle is None else self._throttle.longest_ms(size_bytes)
        return self._attempt_timeout_ms + waits_ms

    def run(
        self, task: PartitionTask, merge: SegmentMerge, lineage: Lineage, segment_id: UUID
    ) -> RemoteLogSegmentMetadata:
        """Merge segments under a new id. Raises as `Merger.merge`.

        A merge may wait long for its slot. FencedError if the partition is not streamed by then:
        its parts would stay next to the merged segment.
        """
        if task.streaming.permit is None:
            raise FencedError("the partition is no longer streamed", offsets=merge.offsets)
        merged = self._merger.merge(
            MergeOrder(
                lead=task.lead,
                segment_id=segment_id,
                merge=merge,
                lineage=lineage,
                timeout_ms=self.timeout_ms(merge.size_bytes),
                stopping=self._stopping.is_set,
                leads=lambda: task.leads,
            )
        )
        topic = task.topic_id_partition.topic
        self._metrics.merged_segments.labels(topic).inc(len(merge.parts))
        return merged
