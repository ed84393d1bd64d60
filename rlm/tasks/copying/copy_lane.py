"""Copies the candidates of each partition in order, oldest first, until one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from uuid import UUID

from rlm.metrics.metrics import Metrics
from rlm.source.log_source import LocalSegment
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import AttemptingLanes, AttemptKind, AttemptLanes
from rlm.tasks.copying.copier import Copier, CopyOrder
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.copying.copy_records import DEFAULT_CUSTOM_METADATA_MAX_BYTES
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Limits one attempt's time, the pause after a first failure, and the custom metadata."""

    attempt_timeout_ms: int
    first_pause_ms: int
    custom_metadata_max_bytes: int = DEFAULT_CUSTOM_METADATA_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _SegmentCopies:
    """Represents the segments that a partition has queued, oldest first.

    `replaces` as in `CopyOrder`.
    """

    copier: Copier
    stopping: Event
    limit_ms: Callable[[int], int]
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
        return self.limit_ms(self.segments[0].size_bytes)

    def copy(self, segment_id: UUID) -> RemoteLogSegmentMetadata:
        task = self.task
        return self.copier.copy(
            CopyOrder(
                lead=task.lead,
                segment_id=segment_id,
                segment=self.segments[0],
                lineage=self.lineage,
                timeout_ms=self.timeout_ms,
                stopping=self.stopping.is_set,
                leads=lambda: task.leads,
                replaces=self.replaces,
            )
        )

    def given_up(self) -> None:
        """Leave it to the next cycle, which decides again."""

    def following(self) -> _SegmentCopies | None:
        rest = self.segments[1:]
        return replace(self, segments=rest) if rest else None


class CopyLanes(AttemptingLanes):
    """Copies segments of all led partitions, one at a time per partition. Thread-safe.

    The lanes know what runs; how it ended is recorded in the partition's task.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        metrics: Metrics,
        stopping: Event,
        limits: CopyLimits,
        throttle: CopyThrottle | None = None,
        pace: CopyPace | None = None,
        kind: AttemptKind = AttemptKind.COPY,
    ) -> None:
        """Copy without a rate limit if `throttle` is None, at the lanes' limit without `pace`."""
        self._attempts = AttemptLanes(
            ports,
            lanes=lanes,
            metrics=metrics,
            stopping=stopping,
            first_pause_ms=limits.first_pause_ms,
            pace=pace,
            kind=kind,
        )
        self._copier = Copier(
            ports,
            throttle,
            pace=pace,
            custom_metadata_max_bytes=limits.custom_metadata_max_bytes,
        )
        self._throttle = throttle
        self._stopping = stopping
        self._attempt_timeout_ms = limits.attempt_timeout_ms

    def oldest_age_ms(self) -> int:
        """Return the age of the oldest copy in flight; 0 if there is none."""
        return self._attempts.oldest_age_ms()

    def offer(
        self,
        task: PartitionTask,
        segments: Sequence[LocalSegment],
        lineage: Lineage,
        replaces: frozenset[UUID] = frozenset(),
    ) -> bool:
        """Queue `segments` in order, unless this partition is busy or its history forbids it.

        Returns whether the lane accepted them. `replaces` as in `CopyOrder`.
        """
        if not segments:
            return False
        return self._attempts.offer(
            _SegmentCopies(
                copier=self._copier,
                stopping=self._stopping,
                limit_ms=self._timeout_ms,
                task=task,
                segments=tuple(segments),
                lineage=lineage,
                replaces=replaces,
            )
        )

    def _timeout_ms(self, size_bytes: int) -> int:
        """Return an attempt's time limit, without the time that the throttle may delay it."""
        if self._throttle is None:
            return self._attempt_timeout_ms
        return self._attempt_timeout_ms + self._throttle.longest_ms(size_bytes)
