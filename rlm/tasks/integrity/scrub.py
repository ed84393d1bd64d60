"""Checks all stored objects of led partitions slowly, to find damage before a reader does.

Each pass checks the length and checksum of every object of the finished segments. It also reads a
share of the segments. The number of the pass selects this share, so each segment is read in one of
several passes, however long a pass takes. Damage is recorded as an anomaly, which
`rlm.tasks.integrity.anomaly_check` handles.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from rlm.metrics.metrics import Metrics
from rlm.tasks.context.fault_report import report_fault
from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import RetryPauses
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.integrity.object_check import SegmentObjectCheck, objects_bytes
from rlmm.events.anomaly import NoAnomalyRoomError
from rlmm.spi import SegmentRecord
from rsm.segment.errors import RetriableError, StoppedError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState
from rsm.spi import ObjectFault

_log = logging.getLogger(__name__)

_DAY_MS = 86_400_000
_LONGEST_FIRST_WAIT_MS = 600_000
_LONGEST_STEP_MS = 10_000
_CHECK_TIMEOUT_MS = 3_600_000
_ATTEMPTS_PER_PASS = 3
_FIRST_PAUSE_MS = 60_000
_POSTPONED_MAX_COUNT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubLimits:
    """Represents the scrub settings, named like their keys; `interval_ms` 0 disables scrubs."""

    interval_ms: int
    segments_per_second: int
    read_percent_per_day: int


class PassNumber(Protocol):
    """Counts passes, also across restarts. Not thread-safe; no call raises."""

    def begin(self) -> int:
        """Return the number of the pass that starts; it stays the same until a pass ends."""

    def end(self) -> None:
        """Record that the pass has ended, so that the next pass gets the next number."""


class Scrub:
    """Checks stored objects in passes. Not thread-safe.

    A segment that cannot be checked is tried again at the end of the pass: three times in all,
    after growing pauses of a minute or more. The next pass covers all segments again. Memory: the
    ids of one partition's segments, and up to 1,000 ids of unchecked segments.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        led: Callable[[], Iterable[TopicIdPartition]],
        limits: ScrubLimits,
        metrics: Metrics,
        stopping: Event,
        throttle: CopyThrottle,
        passes: PassNumber,
        pick: Callable[[int], int],
    ) -> None:
        """Check the partitions that `led` returns; `throttle` limits the rate of all reads.

        `pick(n)` returns a random number below n. The number selects the partition that a pass
        starts with. With a fixed order, restarts that interrupt every pass would always skip the
        same partitions.
        """
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._led = led
        self._limits = limits
        self._metrics = metrics
        self._stopping = stopping
        self._objects = SegmentObjectCheck(
            ports, stopping, timeout_ms=_CHECK_TIMEOUT_MS, throttle=throttle
        )
        self._stepped_ms = ports.clock.monotonic_ms()
        first_wait_ms = min(limits.interval_ms, _LONGEST_FIRST_WAIT_MS)
        self._pass_begins_ms = self._stepped_ms + first_wait_ms
        self._passes = passes
        self._pick = pick
        self._pass_number = 0
        self._is_passing = False
        self._due_ms = 0
        self._partitions: deque[TopicIdPartition] = deque()
        self._segments: deque[RemoteLogSegmentId] = deque()
        self._postponed: deque[RemoteLogSegmentId] = deque()
        self._found: deque[tuple[RemoteLogSegmentId, ObjectFault]] = deque()
        self._log_once = LogOnce()
        self._pauses = RetryPauses(ports.clock, first_pause_ms=_FIRST_PAUSE_MS)

    def step(self) -> None:
        """Check as many segments as the rate allows since the last call; never raises."""
        now_ms = self._clock.monotonic_ms()
        elapsed_ms = min(now_ms - self._stepped_ms, _LONGEST_STEP_MS)
        self._stepped_ms = now_ms
        if not self._limits.interval_ms or now_ms < self._pass_begins_ms:
            return
        if not self._is_passing:
            self._begin_pass()
        # `_due_ms` counts thousandths of a segment, so that no fraction is lost between calls.
        self._due_ms += elapsed_ms * self._limits.segments_per_second
        while self._due_ms >= 1000 and self._report_found():
            if self._stopping.is_set() or not self._check_next():
                break
            self._due_ms -= 1000
        self._due_ms %= 1000
        self._report_found()

    def _begin_pass(self) -> None:
        self._is_passing = True
        self._due_ms = 0
        self._pass_begins_ms = self._clock.monotonic_ms()
        self._pass_number = self._passes.begin()
        self._partitions.extend(self._led())
        self._partitions.rotate(self._pick(max(1, len(self._partitions))))

    def _check_next(self) -> bool:
        """Check one segment; return False if the pass has ended or cannot continue now."""
        try:
            segment_id = self._next_segment()
        except TieredStorageError as error:
            self._log_waiting(error)
            return False
        if segment_id is None:
            return False
        try:
            self._check(segment_id)
        except StoppedError:
            self._segments.appendleft(segment_id)
            return False
        except TieredStorageError as error:
            self._postpone(segment_id, error)
            return False
        self._pauses.clear(segment_id)
        self._log_once.clear(Scrub)
        return True

    def _next_segment(self) -> RemoteLogSegmentId | None:
        """Return the next segment; None if the pass has ended or only waits to retry segments."""
        while not self._segments and self._partitions:
            # The partition moves to the end first, so that it delays no other if it cannot be
            # listed.
            tip = self._partitions.popleft()
            self._partitions.append(tip)
            self._segments.extend(self._stored_of(tip))
            self._partitions.pop()
        if self._segments:
            return self._segments.popleft()
        if not self._postponed:
            self._end_pass()
            return None
        return None if self._pauses.is_pausing(self._postponed[0]) else self._postponed.popleft()

    def _postpone(self, segment_id: RemoteLogSegmentId, error: TieredStorageError) -> None:
        self._log_waiting(error)
        attempts = self._pauses.record_failure(segment_id).count
        if attempts < _ATTEMPTS_PER_PASS and len(self._postponed) < _POSTPONED_MAX_COUNT:
            self._postponed.append(segment_id)
            return
        self._pauses.clear(segment_id)
        self._metrics.scrub_skipped_segments.inc()
        if self._log_once.changed(self._postpone, error.message):
            _log.warning(
                LogLine(
                    "skipped a segment in this pass: its objects cannot be checked",
                    segment_id=segment_id,
                    attempts=attempts,
                    error=error,
                )
            )

    def _log_waiting(self, error: TieredStorageError) -> None:
        if self._log_once.changed(Scrub, error.message):
            _log.info(LogLine("scrub waits for the store or the metadata", error=error))

    def _end_pass(self) -> None:
        self._is_passing = False
        self._passes.end()
        self._pass_begins_ms += self._limits.interval_ms
        self._log_once.clear(self._postpone)
        self._metrics.scrub_pass_ended.set(self._clock.wall_ms() / 1000)

    def _stored_of(self, tip: TopicIdPartition) -> Iterable[RemoteLogSegmentId]:
        """Return the ids of a partition's finished segments; none if it is no longer led."""
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
        faults = self._objects.faults(record.metadata, read=is_read)
        self._metrics.scrubbed_segments.labels("read" if is_read else "stat").inc()
        if is_read:
            self._metrics.scrubbed_bytes.inc(objects_bytes(record.metadata))
        if faults and self._finished(segment_id) is not None:
            self._metrics.scrub_damaged_objects.inc(len(faults))
            self._found.extend((segment_id, fault) for fault in faults)

    def _report_found(self) -> bool:
        """Record the damage found; return False if the metadata topic cannot be written now."""
        while self._found:
            segment_id, fault = self._found[0]
            tip = segment_id.topic_id_partition
            try:
                report_fault(self._metadata, segment_id, fault, self._clock, self._new_id)
            except NoAnomalyRoomError as error:
                if self._log_once.changed(tip, error.message):
                    _log.warning(
                        LogLine("cannot record a damaged object", topic_partition=tip, error=error)
                    )
            except RetriableError as error:
                if self._log_once.changed(self._report_found, error.message):
                    _log.info(LogLine("scrub waits for the metadata topic", error=error))
                return False
            else:
                self._log_once.clear(tip)
            self._found.popleft()
        self._log_once.clear(self._report_found)
        return True

    def _finished(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        """Return the record of a finished segment; None for others, which may have no objects."""
        record = self._metadata.segment(segment_id)
        is_finished = (
            record is not None and record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        )
        return record if is_finished else None

    def _is_read_now(self, segment_id: RemoteLogSegmentId) -> bool:
        """Return whether this pass reads the segment; one of several passes does."""
        percent = self._limits.read_percent_per_day
        if not percent:
            return False
        passes = max(1, round(100 * _DAY_MS / (percent * self._limits.interval_ms)))
        return segment_id.id.int % passes == self._pass_number % passes
