"""Puts on record which stored objects a process cannot read, and clears what it can read again.

Readers are unfenced: one record for each segment, object and kind; the last writer wins. So a
report says nothing that a deletion may follow; the leader's manager looks for itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.remote_read.anomalies import OpenAnomaly, ReadAnomalies
from rlmm.anomaly import Anomaly, AnomalyReported
from rlmm.partition_room import NoAnomalyRoomError
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

_log = logging.getLogger(__name__)

UPDATE_INTERVAL_MS = 60_000
"""An anomaly is put on record at once, and again no earlier than this."""

_ATTEMPTS_MAX_COUNT = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reported:
    """When an anomaly was put on record by this process, and how many attempts it had by then."""

    at_ms: int
    attempts: int


class AnomalyReporter:
    """One thread's. Memory: one entry per open anomaly, and one per partition without room."""

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
        self._reported: dict[UUID, _Reported] = {}
        self._full: set[TopicIdPartition] = set()

    def step(self) -> None:
        """Report what is due. RetriableError if the metadata topic cannot be written.

        A partition without room for another anomaly delays no other partition.
        """
        for closed in self._anomalies.take_closed():
            self._reported.pop(closed.anomaly_id, None)
            self._metadata.clear_anomaly(closed.topic_id_partition, closed.anomaly_id)
        open_now = {found.anomaly.id: found for found in self._anomalies.open_now()}
        for anomaly_id in self._reported.keys() - open_now.keys():
            del self._reported[anomaly_id]
        self._full &= {found.segment_id.topic_id_partition for found in open_now.values()}
        for anomaly_id, found in open_now.items():
            self._report(anomaly_id, found)

    def _report(self, anomaly_id: UUID, found: OpenAnomaly) -> None:
        tip = found.segment_id.topic_id_partition
        record = self._metadata.segment(found.segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            self._anomalies.forget(anomaly_id)
            return
        on_record = self._on_record(found)
        before = self._reported.get(anomaly_id)
        now_ms = self._clock.monotonic_ms()
        if before is not None:
            if on_record is None and found.attempts == before.attempts:
                # The manager found the object whole, and nobody has failed on it since.
                self._anomalies.forget(anomaly_id)
                return
            if now_ms < before.at_ms + UPDATE_INTERVAL_MS or found.attempts == before.attempts:
                return
        known_attempts = 0 if before is None else before.attempts
        anomaly = found.anomaly
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
                _log.warning("anomaly not recorded", extra={"topic_partition": tip, "error": error})
            return
        except RetriableError as error:
            _log.info("anomaly not recorded", extra={"topic_partition": tip, "error": error})
            raise
        self._full.discard(tip)
        if result.accepted:
            self._reported[anomaly_id] = _Reported(at_ms=now_ms, attempts=found.attempts)

    def _on_record(self, found: OpenAnomaly) -> Anomaly | None:
        anomaly_id = found.anomaly.id
        state = self._metadata.partition_state(found.segment_id.topic_id_partition)
        return next((each for each in state.anomalies if each.id == anomaly_id), None)
