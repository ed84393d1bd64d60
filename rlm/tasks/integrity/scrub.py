"""Looks for damaged objects before a reader finds them: slowly, of all led partitions.

Each pass asks the store for length and checksum of every object of finished segments. A share of
the segments is read as well: which one follows from the number of the pass, so that each segment is
read in one of several passes, whatever a pass takes. What is damaged goes on
record as an anomaly, and `tasks.anomaly_check` takes it from there.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from rlm.metrics.metrics import Metrics
from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import RetryPauses
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.integrity.anomaly_check import report_fault
from rlm.tasks.integrity.object_check import SegmentObjectCheck, objects_bytes
from rlmm.partition_room import NoAnomalyRoomError
from rlmm.spi import SegmentRecord
from rsm.segment.errors import FencedError, RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
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
    """The settings of the scrub, named as in the configuration; `interval_ms` 0 turns it off."""

    interval_ms: int
    segments_per_second: int
    read_percent_per_day: int


class PassNumber(Protocol):
    """Counts passes, over restarts too. One thread's; no call raises."""

    def begin(self) -> int:
        """The number of the pass that begins: the same again until one has ended."""

    def end(self) -> None:
        """Note that the pass has ended: the next one has the next number."""


class Scrub:
    """One thread's. Memory: the ids of one partition's segments, and 1,000 that were not checked.

    What cannot be checked is tried again at the end of the pass, after a pause that grows from a
    minute, three times in all. The next pass begins with all segments.
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
        """`led` are the partitions that this manager leads now; `throttle` slows all reads.

        `pick` gives any number below the one it is given: a pass begins with any partition, so that
        one which a restart interrupts each time does not leave out the same partitions each time.
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
        """Check as many segments as the rate allows since the last step; never raises."""
        now_ms = self._clock.monotonic_ms()
        elapsed_ms = min(now_ms - self._stepped_ms, _LONGEST_STEP_MS)
        self._stepped_ms = now_ms
        if not self._limits.interval_ms or now_ms < self._pass_begins_ms:
            return
        if not self._is_passing:
            self._begin_pass()
        # In thousandths of a segment, so that nothing of the rate is lost between steps.
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
        """Check one segment; False if the pass has ended or cannot go on now."""
        try:
            segment_id = self._next_segment()
        except TieredStorageError as error:
            self._log_waiting(error)
            return False
        if segment_id is None:
            return False
        try:
            self._check(segment_id)
        except FencedError:  # the process stops
            self._segments.appendleft(segment_id)
            return False
        except TieredStorageError as error:
            self._postpone(segment_id, error)
            return False
        self._pauses.ended(segment_id)
        self._log_once.clear(Scrub)
        return True

    def _next_segment(self) -> RemoteLogSegmentId | None:
        """None if the pass has ended, or all that is left is to be tried again later."""
        while not self._segments and self._partitions:
            # To the end first: a partition that cannot be listed now keeps no other waiting.
            tip = self._partitions.popleft()
            self._partitions.append(tip)
            self._segments.extend(self._stored_of(tip))
            self._partitions.pop()
        if self._segments:
            return self._segments.popleft()
        if not self._postponed:
            self._end_pass()
            return None
        return None if self._pauses.pausing(self._postponed[0]) else self._postponed.popleft()

    def _postpone(self, segment_id: RemoteLogSegmentId, error: TieredStorageError) -> None:
        self._log_waiting(error)
        attempts = self._pauses.failed(segment_id).count
        if attempts < _ATTEMPTS_PER_PASS and len(self._postponed) < _POSTPONED_MAX_COUNT:
            self._postponed.append(segment_id)
            return
        self._pauses.ended(segment_id)
        self._metrics.scrub_skipped_segments.inc()
        if self._log_once.changed(self._postpone, error.message):
            extra = {"segment_id": segment_id, "attempts": attempts, "error": error}
            _log.warning("stored segment not checked in this pass", extra=extra)

    def _log_waiting(self, error: TieredStorageError) -> None:
        if self._log_once.changed(Scrub, error.message):
            _log.info("scrub waits for the store", extra={"error": error})

    def _end_pass(self) -> None:
        self._is_passing = False
        self._passes.end()
        self._pass_begins_ms += self._limits.interval_ms
        self._log_once.clear(self._postpone)
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
        faults = self._objects.faults(record.metadata, read=is_read)
        self._metrics.scrubbed_segments.labels("read" if is_read else "stat").inc()
        if is_read:
            self._metrics.scrubbed_bytes.inc(objects_bytes(record.metadata))
        if faults and self._finished(segment_id) is not None:
            self._metrics.scrub_damaged_objects.inc(len(faults))
            self._found.extend((segment_id, fault) for fault in faults)

    def _report_found(self) -> bool:
        """Put on record what was found; False if the metadata topic cannot take it now."""
        while self._found:
            segment_id, fault = self._found[0]
            tip = segment_id.topic_id_partition
            try:
                report_fault(self._metadata, segment_id, fault, self._clock, self._new_id)
            except NoAnomalyRoomError as error:
                if self._log_once.changed(tip, error.message):
                    extra = {"topic_partition": tip, "error": error}
                    _log.warning("damaged object not recorded", extra=extra)
            except RetriableError as error:
                if self._log_once.changed(self._report_found, error.message):
                    _log.info("scrub waits for the metadata topic", extra={"error": error})
                return False
            else:
                self._log_once.clear(tip)
            self._found.popleft()
        self._log_once.clear(self._report_found)
        return True

    def _finished(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        """Its record, unless it is being deleted: then its objects are missing rightly."""
        record = self._metadata.segment(segment_id)
        is_finished = (
            record is not None and record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        )
        return record if is_finished else None

    def _is_read_now(self, segment_id: RemoteLogSegmentId) -> bool:
        """Each segment in one of several passes."""
        percent = self._limits.read_percent_per_day
        if not percent:
            return False
        passes = max(1, round(100 * _DAY_MS / (percent * self._limits.interval_ms)))
        return segment_id.id.int % passes == self._pass_number % passes
