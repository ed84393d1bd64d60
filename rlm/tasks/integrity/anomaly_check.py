"""Checks each stored object that a process reported as missing or corrupt.

Checks only partitions that this manager leads. An anomaly ends when its object is found whole or
its segment is no longer in the state COPY_SEGMENT_FINISHED. The cycle copies damaged segments again
(rlm/policy/repair.py). The check also reads segments that overlap a damaged one. Only a segment
found whole can replace it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Event
from uuid import UUID

from rlm.policy.view import Damage
from rlm.tasks.context.fault_report import report_fault
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import RetryPauses
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.integrity.object_check import SegmentObjectCheck
from rlm.tasks.leadership.partition_task import DamageCheck, PartitionTask
from rlmm.events.anomaly import NoAnomalyRoomError, clear_anomaly
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.errors import RetriableError, StoppedError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.spi import ObjectFault

_log = logging.getLogger(__name__)

_FIRST_PAUSE_MS = 60_000
_LONGEST_READ_PAUSE_MS = 3_600_000
_PAUSE_AFTER_WHOLE_MS = 3_600_000
_CHECK_TIMEOUT_MS = 600_000

_ANOMALY = "anomaly"


class AnomalyCheck:
    """Finds the damage of the led partitions and records it in their tasks. Not thread-safe.

    A check asks the store for lengths and checksums, at most once a minute per segment. After a
    reader has cleared the anomaly, it asks at once. If bytes were reported as corrupt, the check
    reads the objects instead, after pauses that grow to an hour. It does not read objects again
    within an hour after it found them whole. Damage that this manager found ends only with a check
    by this manager.

    Memory: one entry per damaged segment, one per overlapping segment, and one per segment that a
    read found whole in the last two hours.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        led: Callable[[], Iterable[PartitionTask]],
        stopping: Event,
        throttle: CopyThrottle | None = None,
    ) -> None:
        """Check the partitions that `led` returns. If `throttle` is None, reads are not limited."""
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._led = led
        self._stopping = stopping
        self._check = SegmentObjectCheck(
            ports, stopping, timeout_ms=_CHECK_TIMEOUT_MS, throttle=throttle
        )
        self._read_whole = self._pauses(_PAUSE_AFTER_WHOLE_MS, _PAUSE_AFTER_WHOLE_MS)
        self._new_id = ports.new_id

    def _pauses(self, first_pause_ms: int, longest_pause_ms: int) -> RetryPauses:
        return RetryPauses(
            self._clock, first_pause_ms=first_pause_ms, longest_pause_ms=longest_pause_ms
        )

    def step(self) -> None:
        """Run the checks that are due.

        Raises RetriableError if the metadata topic cannot be written. A partition whose records
        cannot be written delays no other partition.
        """
        self._read_whole.forget_stale()
        problem: RetriableError | None = None
        for task in self._led():
            try:
                self._check_partition(task)
            except RetriableError as error:
                problem = problem or error
            task.damage = self._found(task)
        if problem is not None:
            raise problem

    def _check_partition(self, task: PartitionTask) -> None:
        """Check a partition's reported and known damage, and the segments that may replace it."""
        tip = task.topic_id_partition
        reported = _by_segment(self._metadata.partition_state(tip).anomalies)
        if task.damage_check is None:
            if not reported:
                return
            task.damage_check = DamageCheck(
                object_checks=self._pauses(_FIRST_PAUSE_MS, _FIRST_PAUSE_MS),
                reads=self._pauses(_FIRST_PAUSE_MS, _LONGEST_READ_PAUSE_MS),
            )
        check = task.damage_check
        if not reported and not check.damaged:
            return
        known = {RemoteLogSegmentId(topic_id_partition=tip, id=each) for each in reported}
        for segment_id in (*known, *(check.damaged.keys() - known)):
            if self._stopping.is_set():
                return
            self._check_segment(task, check, segment_id, reported.get(segment_id.id, ()))
        self._check_replacements(task, check)

    def _found(self, task: PartitionTask) -> Damage:
        """Return what the checks of a partition have found so far."""
        check = task.damage_check
        if check is None or not (check.damaged or check.whole):
            task.log.clear(_ANOMALY)
            return Damage()
        return Damage(
            damaged=frozenset(each.id for each in check.damaged),
            whole=frozenset(each.id for each in check.whole),
        )

    def _check_replacements(self, task: PartitionTask, check: DamageCheck) -> None:
        """Check the segments that may replace a damaged one."""
        around: dict[RemoteLogSegmentId, RemoteLogSegmentMetadata] = {}
        for segment_id in check.damaged:
            around.update((each.segment_id, each) for each in self._overlapping(check, segment_id))
        for segment_id in check.whole - around.keys():
            check.whole.discard(segment_id)
            check.object_checks.clear(segment_id)
        for segment_id, metadata in around.items():
            if not self._stopping.is_set() and not check.object_checks.is_pausing(segment_id):
                self._check_whole(task, check, metadata)

    def _overlapping(
        self, check: DamageCheck, segment_id: RemoteLogSegmentId
    ) -> Iterator[RemoteLogSegmentMetadata]:
        """Yield finished segments that overlap a damaged one and are not known to be damaged."""
        record = self._metadata.segment(segment_id)
        if record is None:
            return
        offsets = record.metadata.offsets
        for other in self._metadata.list_remote_log_segments(
            segment_id.topic_id_partition,
            states=(SegmentState.COPY_SEGMENT_FINISHED,),
            from_offset=offsets.start_offset,
        ):
            if other.metadata.offsets.start_offset >= offsets.end_offset:
                return
            if other.metadata.segment_id not in check.damaged:
                yield other.metadata

    def _check_whole(
        self, task: PartitionTask, check: DamageCheck, metadata: RemoteLogSegmentMetadata
    ) -> None:
        """Read a segment not yet found whole, else check lengths and checksums; report damage."""
        segment_id = metadata.segment_id
        is_read = segment_id not in check.whole
        if is_read and check.reads.is_pausing(segment_id):
            return
        check.object_checks.record_failure(segment_id)
        if is_read:
            check.reads.record_failure(segment_id)
        faults = self._faults(metadata, read=is_read)
        if faults is None:
            return
        if not faults:
            check.whole.add(segment_id)
            check.reads.clear(segment_id)
            return
        check.whole.discard(segment_id)
        self._report(task, segment_id, faults)

    def _check_segment(
        self,
        task: PartitionTask,
        check: DamageCheck,
        segment_id: RemoteLogSegmentId,
        anomalies: tuple[Anomaly, ...],
    ) -> None:
        record = self._metadata.segment(segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            _forget(check, segment_id)
            self._clear(segment_id, anomalies)
            return
        found = check.damaged.get(segment_id, ())
        is_corrupt = any(each.kind is AnomalyKind.CORRUPT for each in anomalies) or any(
            not fault.is_missing for fault in found
        )
        if found and not anomalies and not is_corrupt:
            check.object_checks.clear(segment_id)  # A reader cleared the anomaly, so check now.
        if self._is_pausing(check, segment_id, is_corrupt=is_corrupt, is_found=bool(found)):
            self._report(task, segment_id, found)
            return
        (check.reads if is_corrupt else check.object_checks).record_failure(segment_id)
        faults = self._faults(record.metadata, read=is_corrupt)
        if faults is None:
            return
        _record(check, segment_id, faults)
        if not faults and is_corrupt:
            self._read_whole.record_failure(segment_id)
        damaged_keys = {fault.object_key for fault in faults}
        self._clear(segment_id, (a for a in anomalies if a.object_key not in damaged_keys))
        self._report(task, segment_id, faults)

    def _is_pausing(
        self,
        check: DamageCheck,
        segment_id: RemoteLogSegmentId,
        *,
        is_corrupt: bool,
        is_found: bool,
    ) -> bool:
        """Return whether a check must wait; a check that reads all bytes waits longer."""
        if not is_corrupt:
            return check.object_checks.is_pausing(segment_id)
        was_whole = not is_found and self._read_whole.is_pausing(segment_id)
        return was_whole or check.reads.is_pausing(segment_id)

    def _report(
        self,
        task: PartitionTask,
        segment_id: RemoteLogSegmentId,
        faults: Iterable[ObjectFault],
    ) -> None:
        """Record faults that have no record: a reader of an intact range may have cleared it."""
        try:
            for fault in faults:
                report_fault(self._metadata, segment_id, fault, self._clock, self._new_id)
        except NoAnomalyRoomError as error:
            if task.log.changed(_ANOMALY, error.message):
                _log.warning(
                    LogLine(
                        "cannot record a damaged object",
                        topic_partition=task.topic_id_partition,
                        error=error,
                    )
                )

    def _faults(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool
    ) -> tuple[ObjectFault, ...] | None:
        """Return the damaged objects; None if they cannot be checked now.

        The store may not answer, the process may stop, or the segment's layout may be unknown.
        """
        try:
            return self._check.faults(metadata, read=read)
        except (RetriableError, StoppedError, UnsupportedError) as error:
            what = "postponed a check of stored objects"
            _log.info(LogLine(what, segment_id=metadata.segment_id, error=error))
            return None

    def _clear(self, segment_id: RemoteLogSegmentId, anomalies: Iterable[Anomaly]) -> None:
        for anomaly in anomalies:
            clear_anomaly(self._metadata, segment_id.topic_id_partition, anomaly.id)
            _log.info(
                LogLine(
                    "cleared the anomaly of a stored object",
                    segment_id=segment_id,
                    object=anomaly.object_key,
                )
            )


def _record(
    check: DamageCheck, segment_id: RemoteLogSegmentId, faults: tuple[ObjectFault, ...]
) -> None:
    if not faults:
        _forget(check, segment_id)
        return
    if segment_id not in check.damaged:
        for fault in faults:
            _log.warning(
                LogLine(
                    "found a damaged stored object",
                    segment_id=segment_id,
                    object=fault.object_key,
                    reason=fault.reason,
                )
            )
    check.damaged[segment_id] = faults


def _forget(check: DamageCheck, segment_id: RemoteLogSegmentId) -> None:
    check.damaged.pop(segment_id, None)
    check.object_checks.clear(segment_id)
    check.reads.clear(segment_id)


def _by_segment(anomalies: Iterable[Anomaly]) -> Mapping[UUID, tuple[Anomaly, ...]]:
    found: dict[UUID, tuple[Anomaly, ...]] = {}
    for anomaly in anomalies:
        found[anomaly.segment] = (*found.get(anomaly.segment, ()), anomaly)
    return found
