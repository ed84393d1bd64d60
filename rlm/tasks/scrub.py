"""Looks for damaged objects before a reader finds them: slowly, of all led partitions.

Each pass asks the store for length and checksum of every object of finished segments. A share of
the segments is read as well, so that in the course of days all of them are. What is damaged goes on
record as an anomaly, and `tasks.anomaly_check` takes it from there.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event

from rlm.metrics import Metrics
from rlm.tasks.anomaly_check import report_fault
from rlm.tasks.copier import BoundedAttempt
from rlm.tasks.copy_throttle import CopyThrottle
from rlm.tasks.ports import Ports
from rlmm.spi import SegmentRecord
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.spi import CopyAttempt, ObjectFault

_log = logging.getLogger(__name__)

_DAY_MS = 86_400_000
_LONGEST_FIRST_WAIT_MS = 600_000
_LONGEST_STEP_MS = 10_000
_CHECK_TIMEOUT_MS = 3_600_000
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubLimits:
    """The settings of the scrub, named as in the configuration; `interval_ms` 0 turns it off."""

    interval_ms: int
    segments_per_second: int
    read_percent_per_day: int
    read_bytes_per_second: int


class Scrub:
    """One thread's. Memory: the ids of one partition's segments."""

    def __init__(
        self,
        ports: Ports,
        *,
        led: Callable[[], Iterable[TopicIdPartition]],
        limits: ScrubLimits,
        metrics: Metrics,
        stopping: Event,
    ) -> None:
        """`led` are the partitions that this manager leads now."""
        self._metadata = ports.metadata
        self._storage = ports.storage
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._led = led
        self._limits = limits
        self._metrics = metrics
        self._stopping = stopping
        self._throttle = CopyThrottle(
            ports.clock,
            bytes_per_second=limits.read_bytes_per_second,
            sharers=1,
            waited=lambda _: None,
        )
        self._stepped_ms = ports.clock.monotonic_ms()
        first_wait_ms = min(limits.interval_ms, _LONGEST_FIRST_WAIT_MS)
        self._pass_begins_ms = self._stepped_ms + first_wait_ms
        self._pass_number = 0
        self._is_passing = False
        self._partitions: deque[TopicIdPartition] = deque()
        self._segments: deque[RemoteLogSegmentId] = deque()

    def step(self) -> None:
        """Check as many segments as the rate allows since the last step; never raises."""
        now_ms = self._clock.monotonic_ms()
        elapsed_ms = min(now_ms - self._stepped_ms, _LONGEST_STEP_MS)
        self._stepped_ms = now_ms
        if not self._limits.interval_ms or now_ms < self._pass_begins_ms:
            return
        if not self._is_passing:
            self._begin_pass()
        for _ in range(max(1, self._limits.segments_per_second * elapsed_ms // 1000)):
            if self._stopping.is_set() or not self._check_next():
                return

    def _begin_pass(self) -> None:
        self._is_passing = True
        self._pass_begins_ms = self._clock.monotonic_ms()
        self._pass_number = self._clock.wall_ms() // self._limits.interval_ms
        self._partitions.extend(self._led())

    def _check_next(self) -> bool:
        """Check one segment; False if the pass has ended or cannot go on now."""
        while not self._segments:
            if not self._partitions:
                self._end_pass()
                return False
            self._segments.extend(self._stored_of(self._partitions.popleft()))
        try:
            self._check(self._segments[0])
        except (FencedError, RetriableError) as error:
            extra = {"segment_id": self._segments[0], "error": error}
            _log.info("scrub waits for the store", extra=extra)
            return False
        self._segments.popleft()
        return True

    def _end_pass(self) -> None:
        self._is_passing = False
        self._pass_begins_ms += self._limits.interval_ms
        self._metrics.scrub_pass_ended.set(self._clock.wall_ms() / 1000)

    def _stored_of(self, tip: TopicIdPartition) -> Iterable[RemoteLogSegmentId]:
        """A partition's finished segments; none if it is not led any more."""
        if tip not in set(self._led()):
            return ()
        states = (SegmentState.COPY_SEGMENT_FINISHED,)
        records = self._metadata.list_remote_log_segments(tip, states=states)
        return tuple(record.metadata.segment_id for record in records)

    def _check(self, segment_id: RemoteLogSegmentId) -> None:
        record = self._finished(segment_id)
        if record is None:
            return
        is_read = self._is_read_now(segment_id)
        deadline_ms = self._clock.monotonic_ms() + _CHECK_TIMEOUT_MS
        attempt: CopyAttempt = BoundedAttempt(self._clock, deadline_ms, self._stopping.is_set)
        if is_read:
            attempt = _PacedAttempt(attempt, self._throttle)
        faults = self._storage.check_objects(record.metadata, read=is_read, attempt=attempt)
        self._metrics.scrubbed_segments.labels("read" if is_read else "stat").inc()
        if is_read:
            objects = record.metadata.objects
            self._metrics.scrubbed_bytes.inc(sum(each.length_bytes or 0 for each in objects))
        if faults and self._finished(segment_id) is not None:
            self._report(segment_id, faults)

    def _report(self, segment_id: RemoteLogSegmentId, faults: tuple[ObjectFault, ...]) -> None:
        for fault in faults:
            report_fault(self._metadata, segment_id, fault, self._clock, self._new_id)
            self._metrics.scrub_damaged_objects.inc()

    def _finished(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        """Its record, unless it is being deleted: then its objects are missing rightly."""
        record = self._metadata.segment(segment_id)
        is_finished = (
            record is not None and record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        )
        return record if is_finished else None

    def _is_read_now(self, segment_id: RemoteLogSegmentId) -> bool:
        """Each segment in one of so many passes, whichever manager makes them."""
        percent = self._limits.read_percent_per_day
        if not percent:
            return False
        passes = max(1, round(100 * _DAY_MS / (percent * self._limits.interval_ms)))
        return segment_id.id.int % passes == self._pass_number % passes


class _PacedAttempt(CopyAttempt):
    """Waits before each piece that is read."""

    def __init__(self, attempt: CopyAttempt, throttle: CopyThrottle) -> None:
        self._attempt = attempt
        self._throttle = throttle

    def check(self) -> None:
        self._attempt.check()
        self._throttle.wait_turn(_PIECE_BYTES, self._attempt)
