"""Copies the segments of each partition in order, oldest first, until a copy fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.facts.local_log import LocalSegment
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import (
    AttemptContext,
    AttemptKind,
    AttemptLanes,
    AttemptRunner,
)
from rlm.tasks.copying.copier import Copier, CopyOrder
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class _SegmentCopies:
    """Represents the queued segments of a partition, oldest first.

    `CopyOrder` describes `replaces`.
    """

    copier: Copier
    context: AttemptContext
    task: PartitionTask
    segments: tuple[LocalSegment, ...]
    lineage: Lineage
    replaces: frozenset[UUID]

    @property
    def base_offset(self) -> int:
        return self.segments[0].offsets.start_offset

    @property
    def facts(self) -> Mapping[str, object]:
        segment = self.segments[0]
        return {
            "base_offset": self.base_offset,
            "end_offset": segment.offsets.end_offset,
            "bytes": segment.size_bytes,
        }

    @property
    def timeout_ms(self) -> int:
        return self.context.timeout_ms(self.segments[0].size_bytes)

    def copy(self, segment_id: UUID) -> RemoteLogSegmentMetadata:
        task = self.task
        return self.copier.copy(
            CopyOrder(
                lead=task.lead,
                segment_id=segment_id,
                segment=self.segments[0],
                lineage=self.lineage,
                timeout_ms=self.timeout_ms,
                stopping=self.context.stopping.is_set,
                leads=lambda: task.leads,
                replaces=self.replaces,
            )
        )

    def give_up(self) -> None:
        """Do nothing: the next cycle decides again."""

    def following(self) -> _SegmentCopies | None:
        rest = self.segments[1:]
        return replace(self, segments=rest) if rest else None


class CopyLanes(AttemptLanes):
    """Copies segments of all led partitions, one at a time per partition. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        context: AttemptContext,
        *,
        pace: CopyPace | None = None,
        kind: AttemptKind = AttemptKind.COPY,
    ) -> None:
        """Run as many copies as the lanes allow if `pace` is None."""
        self._attempts = AttemptRunner(ports, context, pace=pace, kind=kind)
        self._copier = Copier(
            ports,
            context.throttle,
            pace=pace,
            custom_metadata_max_bytes=context.custom_metadata_max_bytes,
        )
        self._context = context

    def oldest_age_ms(self) -> int:
        """Return the age of the oldest running copy; 0 if there is none."""
        return self._attempts.oldest_age_ms()

    def offer(
        self,
        task: PartitionTask,
        segments: Sequence[LocalSegment],
        lineage: Lineage,
        replaces: frozenset[UUID] = frozenset(),
    ) -> bool:
        """Queue `segments` in order, unless this partition is busy or its history forbids it.

        Returns whether the lanes accepted them. `CopyOrder` describes `replaces`.
        """
        if not segments:
            return False
        return self._attempts.offer(
            _SegmentCopies(
                copier=self._copier,
                context=self._context,
                task=task,
                segments=tuple(segments),
                lineage=lineage,
                replaces=replaces,
            )
        )
