"""ReadAnomalies: tracks stored objects that a reader found missing or corrupt.

An anomaly opens with a failed read and closes when reads of the failed offsets succeed. The first
failed read of a segment is logged. Until a minute after the segment's last anomaly closed, later
failures are only counted; their sum is logged at most once in ten minutes. This module does not
know the metadata topic: rlm.remote_read.anomaly_reporter records open anomalies there.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.read.unreadable_segment import object_fault
from rsm.segment.clock import Clock
from rsm.segment.errors import CorruptError, NotFoundError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange

_log = logging.getLogger(__name__)

_MAX_OPEN_ANOMALIES = 1_000
_MAX_LABELS = 1_000
_MAX_FAILED_OFFSETS = 64
_SUMMARY_INTERVAL_MS = 600_000
_REOPEN_MS = 60_000
_OTHER = ("other", "-1")


class AnomalyLabels(NamedTuple):
    """Represents the labels of failed reads in metrics."""

    topic: str
    partition: str
    kind: str


@dataclass(slots=True)
class OpenAnomaly:
    """Represents an object that cannot be read, with at most 64 offsets of failed reads."""

    segment_id: RemoteLogSegmentId
    object_key: str
    kind: AnomalyKind
    first_ms: int
    last_ms: int
    attempts: int = 0
    is_logged: bool = False
    failed_offsets: set[int] = field(default_factory=set)

    @property
    def anomaly(self) -> Anomaly:
        """Return the anomaly as the metadata topic records it."""
        return Anomaly(
            segment=self.segment_id.id,
            object_key=self.object_key,
            kind=self.kind,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            attempts=self.attempts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedAnomaly:
    """Represents an anomaly whose object can be read again."""

    topic_id_partition: TopicIdPartition
    anomaly_id: UUID


class ReadAnomalies:
    """Counts each failed read of a segment, and lists unreadable objects. Thread-safe.

    Memory: 1,000 open anomalies with at most 64 offsets each, 1,000 closed ones, and 1,000 counts.
    The ids of 1,000 logged segments and of 1,000 with recently closed anomalies add to that.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: Counter[AnomalyLabels] = Counter()
        self._open: dict[UUID, OpenAnomaly] = {}
        self._closed: dict[UUID, ClosedAnomaly] = {}
        self._logged_segments: set[RemoteLogSegmentId] = set()
        # The times are monotonic, and the oldest comes first.
        self._closed_segments: dict[RemoteLogSegmentId, int] = {}
        self._unlogged_count = 0
        self._summary_at_ms = 0
        self._lock = threading.Lock()

    def record(
        self,
        metadata: RemoteLogSegmentMetadata,
        error: NotFoundError | CorruptError,
        *,
        offset: int,
    ) -> None:
        """Record that a read at `offset` failed in a segment."""
        fault = object_fault(metadata, error)
        kind = AnomalyKind.MISSING if fault.is_missing else AnomalyKind.CORRUPT
        key = fault.object_key
        now_ms = self._clock.wall_ms()
        with self._lock:
            self._count(metadata.topic_id_partition, kind)
            found = self._opened(metadata.segment_id, key, kind, now_ms)
            if found is not None:
                found.last_ms = max(found.last_ms, now_ms)
                found.attempts += 1
                if len(found.failed_offsets) < _MAX_FAILED_OFFSETS:
                    found.failed_offsets.add(offset)
            is_first = found is not None and self._is_first(metadata.segment_id)
            if is_first and found is not None:
                found.is_logged = True
            if not is_first:
                self._unlogged_count += 1
            summary = None if is_first else self._summary()
        if is_first:
            _log.warning(
                LogLine(
                    "cannot read a stored segment",
                    segment_id=metadata.segment_id,
                    offsets=metadata.offsets,
                    object=key,
                    anomaly=kind.label,
                    error=error,
                )
            )
        if summary is not None:
            segments, attempts = summary
            _log.warning(
                LogLine("cannot read stored segments", segments=segments, attempts=attempts)
            )

    def record_success(self, segment_id: RemoteLogSegmentId, offsets: OffsetRange) -> None:
        """Record a successful read; close each anomaly whose failed offsets were all read."""
        if not self._open:  # Most reads end here, without the lock.
            return
        closed = []
        with self._lock:
            for anomaly_id, found in list(self._open.items()):
                if found.segment_id != segment_id:
                    continue
                found.failed_offsets = {o for o in found.failed_offsets if o not in offsets}
                if not found.failed_offsets:
                    del self._open[anomaly_id]
                    closed.append(found)
                    if len(self._closed) < _MAX_OPEN_ANOMALIES:
                        self._closed[anomaly_id] = ClosedAnomaly(
                            topic_id_partition=segment_id.topic_id_partition,
                            anomaly_id=anomaly_id,
                        )
            if closed:
                self._close_segment(segment_id)
        for found in closed:
            if found.is_logged:
                _log.info(
                    LogLine(
                        "read a stored segment again",
                        segment_id=segment_id,
                        object=found.object_key,
                    )
                )

    def is_open(self, segment_id: RemoteLogSegmentId) -> bool:
        """Return whether the segment has an open anomaly."""
        if not self._open:
            return False
        with self._lock:
            return self._has_open(segment_id)

    def open_now(self) -> tuple[OpenAnomaly, ...]:
        """Return the open anomalies. The caller must not change them."""
        with self._lock:
            return tuple(self._open.values())

    def take_closed(self) -> tuple[ClosedAnomaly, ...]:
        """Return the anomalies that closed since the last call."""
        with self._lock:
            closed = tuple(self._closed.values())
            self._closed.clear()
        return closed

    def forget(self, anomaly_id: UUID) -> None:
        """Remove an anomaly because its segment is no longer stored or its object is intact."""
        with self._lock:
            found = self._open.pop(anomaly_id, None)
            if found is not None:
                self._close_segment(found.segment_id)

    def counts(self) -> Mapping[AnomalyLabels, int]:
        with self._lock:
            return dict(self._counts)

    def _opened(
        self, segment_id: RemoteLogSegmentId, key: str, kind: AnomalyKind, now_ms: int
    ) -> OpenAnomaly | None:
        new = OpenAnomaly(segment_id, key, kind, first_ms=now_ms, last_ms=now_ms, attempts=1)
        anomaly_id = new.anomaly.id
        if anomaly_id not in self._open:
            if len(self._open) >= _MAX_OPEN_ANOMALIES:
                return None
            new.attempts = 0
            self._open[anomaly_id] = new
            self._closed.pop(anomaly_id, None)
        return self._open[anomaly_id]

    def _count(self, tip: TopicIdPartition, kind: AnomalyKind) -> None:
        labels = AnomalyLabels(tip.topic, str(tip.partition), kind.label)
        if labels not in self._counts and len(self._counts) >= _MAX_LABELS:
            labels = AnomalyLabels(*_OTHER, kind.label)
        self._counts[labels] += 1

    def _is_first(self, segment_id: RemoteLogSegmentId) -> bool:
        """Return whether to log a segment with an open anomaly; mark the segment as logged."""
        now_ms = self._clock.monotonic_ms()
        closed_ms = self._closed_segments.pop(segment_id, None)
        if closed_ms is not None and now_ms < closed_ms + _REOPEN_MS:
            self._logged_segments.add(segment_id)
        if segment_id in self._logged_segments:
            return False
        if not self._logged_segments:
            self._summary_at_ms = now_ms + _SUMMARY_INTERVAL_MS
        self._logged_segments.add(segment_id)
        return True

    def _has_open(self, segment_id: RemoteLogSegmentId) -> bool:
        return any(each.segment_id == segment_id for each in self._open.values())

    def _close_segment(self, segment_id: RemoteLogSegmentId) -> None:
        """Remember for a minute that a segment without open anomalies was logged.

        Drops the oldest segments above 1,000.
        """
        if segment_id not in self._logged_segments or self._has_open(segment_id):
            return
        self._logged_segments.discard(segment_id)
        now_ms = self._clock.monotonic_ms()
        self._closed_segments.pop(segment_id, None)
        self._closed_segments[segment_id] = now_ms
        for each, closed_ms in list(self._closed_segments.items()):
            is_recent = now_ms < closed_ms + _REOPEN_MS
            if is_recent and len(self._closed_segments) <= _MAX_OPEN_ANOMALIES:
                break
            del self._closed_segments[each]

    def _summary(self) -> tuple[int, int] | None:
        """Return (failing segments, unlogged failures since the last sum); None if too soon."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._summary_at_ms:
            return None
        self._summary_at_ms = now_ms + _SUMMARY_INTERVAL_MS
        summary = len(self._logged_segments), self._unlogged_count
        self._unlogged_count = 0
        return summary
