"""AnomalyReporter: records in the metadata topic which stored objects a process cannot read.

It also clears the record of an object when the process can read the object again. Readers are not
fenced: there is one record for each segment, object and kind, and the last writer wins. No deletion
may follow from a report alone, so the leader's manager checks the object itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.remote_read.anomalies import OpenAnomaly, ReadAnomalies
from rlmm.events.anomaly import AnomalyReported, NoAnomalyRoomError, clear_anomaly
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.anomalies import Anomaly
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState

_log = logging.getLogger(__name__)

UPDATE_INTERVAL_MS = 60_000
"""The least time between two records of one anomaly, even if it closes in between."""

_ATTEMPTS_MAX_COUNT = (1 << 63) - 1
_CLOSED_REPORTS_COUNT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportedAnomaly:
    """Represents when this process recorded `found`, and with how many attempts.

    If an anomaly closes and opens again, it is a new `found`, whose attempts start at 0.
    """

    at_ms: int
    found: OpenAnomaly
    attempts: int
    is_accepted: bool

    def attempts_of(self, found: OpenAnomaly) -> int:
        """Return how many attempts of `found` the record includes."""
        return self.attempts if self.is_accepted and self.found is found else 0


class AnomalyReporter:
    """Records the open anomalies of a process, and clears closed ones. Used by one thread.

    Memory: one entry for each open anomaly, one for each partition without room for another, and up
    to 1,000 for anomalies that closed within a minute after their report.
    """

    def __init__(
        self,
        anomalies: ReadAnomalies,
        metadata: RemoteLogMetadataManager,
        clock: Clock,
        new_id: Callable[[], UUID],
    ) -> None:
        self._anomalies = anomalies
        self._metadata = metadata
        self._clock = clock
        self._new_id = new_id
        self._reported: dict[UUID, _ReportedAnomaly] = {}
        self._full: set[TopicIdPartition] = set()

    def step(self) -> None:
        """Report what is due. Raises RetriableError if the metadata topic cannot be written.

        A partition without room for another anomaly delays no other partition.
        """
        for closed in self._anomalies.take_closed():
            if self._on_record(closed.topic_id_partition, closed.anomaly_id) is not None:
                clear_anomaly(self._metadata, closed.topic_id_partition, closed.anomaly_id)
        open_now = {found.anomaly.id: found for found in self._anomalies.open_now()}
        self._forget_reports_except(open_now.keys())
        self._full &= {found.segment_id.topic_id_partition for found in open_now.values()}
        for anomaly_id, found in open_now.items():
            self._report(anomaly_id, found)

    def _report(self, anomaly_id: UUID, found: OpenAnomaly) -> None:
        tip = found.segment_id.topic_id_partition
        record = self._metadata.segment(found.segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            self._anomalies.forget(anomaly_id)
            return
        on_record = self._on_record(tip, anomaly_id)
        before = self._reported.get(anomaly_id)
        now_ms = self._clock.monotonic_ms()
        known_attempts = 0 if before is None else before.attempts_of(found)
        if known_attempts and found.attempts == known_attempts:
            if on_record is None:
                # The manager found the object intact, and no read has failed since.
                self._anomalies.forget(anomaly_id)
            return
        if before is not None and now_ms < before.at_ms + UPDATE_INTERVAL_MS:
            return
        own = anomaly = found.anomaly
        if on_record is not None:
            anomaly = replace(
                anomaly,
                first_ms=min(anomaly.first_ms, on_record.first_ms),
                last_ms=max(anomaly.last_ms, on_record.last_ms),
                attempts=min(
                    on_record.attempts + anomaly.attempts - known_attempts, _ATTEMPTS_MAX_COUNT
                ),
            )
        event = AnomalyReported(event_id=self._new_id(), topic_id_partition=tip, anomaly=anomaly)
        try:
            result = self._metadata.publish(event)
        except NoAnomalyRoomError as error:
            if tip not in self._full:
                self._full.add(tip)
                _log.warning(LogLine("cannot record anomaly", topic_partition=tip, error=error))
            return
        except RetriableError as error:
            _log.info(LogLine("cannot record anomaly", topic_partition=tip, error=error))
            raise
        self._full.discard(tip)
        self._reported[anomaly_id] = _ReportedAnomaly(
            at_ms=now_ms, found=found, attempts=own.attempts, is_accepted=result.accepted
        )

    def _forget_reports_except(self, open_ids: Iterable[UUID]) -> None:
        """Remove reports of closed anomalies after the interval, and the oldest above 1,000."""
        oldest_ms = self._clock.monotonic_ms() - UPDATE_INTERVAL_MS
        closed = sorted(
            self._reported.keys() - open_ids, key=lambda each: self._reported[each].at_ms
        )
        excess = len(closed) - _CLOSED_REPORTS_COUNT
        for number, anomaly_id in enumerate(closed):
            if number < excess or self._reported[anomaly_id].at_ms <= oldest_ms:
                del self._reported[anomaly_id]

    def _on_record(self, tip: TopicIdPartition, anomaly_id: UUID) -> Anomaly | None:
        state = self._metadata.partition_state(tip)
        return next((each for each in state.anomalies if each.id == anomaly_id), None)
