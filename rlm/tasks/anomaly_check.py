"""Looks for itself at each stored object that somebody reported as missing or corrupt.

Of the partitions that this manager leads: an object that is whole is no anomaly any more, and one
of a segment that is not finished never was. Nothing is deleted or copied by what is found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from threading import Event
from uuid import UUID

from rlm.tasks.copier import BoundedAttempt
from rlm.tasks.ports import Ports
from rlm.tasks.retry_pauses import RetryPauses
from rlmm.anomaly import Anomaly, AnomalyKind
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

_log = logging.getLogger(__name__)

_FIRST_PAUSE_MS = 60_000
_LONGEST_READ_PAUSE_MS = 3_600_000
_CHECK_TIMEOUT_MS = 600_000


class AnomalyCheck:
    """One thread's. Memory: one entry per segment that is damaged now.

    A look asks the store for length and checksum, at most once a minute for each segment. Where
    bytes were corrupt the objects are read as well, after pauses that grow to an hour.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        led: Callable[[], Iterable[TopicIdPartition]],
        stopping: Event,
    ) -> None:
        """`led` are the partitions that this manager leads now."""
        self._metadata = ports.metadata
        self._storage = ports.storage
        self._clock = ports.clock
        self._led = led
        self._stopping = stopping
        self._looks = RetryPauses(
            ports.clock, first_pause_ms=_FIRST_PAUSE_MS, longest_pause_ms=_FIRST_PAUSE_MS
        )
        self._reads = RetryPauses(
            ports.clock, first_pause_ms=_FIRST_PAUSE_MS, longest_pause_ms=_LONGEST_READ_PAUSE_MS
        )
        self._damaged: set[RemoteLogSegmentId] = set()

    def step(self) -> None:
        """Look at what is due. RetriableError if the store or the metadata cannot be asked."""
        seen: set[RemoteLogSegmentId] = set()
        for tip in self._led():
            for segment, anomalies in _by_segment(self._metadata.partition_state(tip).anomalies):
                segment_id = RemoteLogSegmentId(topic_id_partition=tip, id=segment)
                seen.add(segment_id)
                if not self._stopping.is_set():
                    self._look(segment_id, anomalies)
        for segment_id in self._damaged - seen:
            self._forget(segment_id)

    def _look(self, segment_id: RemoteLogSegmentId, anomalies: tuple[Anomaly, ...]) -> None:
        record = self._metadata.segment(segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            self._clear(segment_id, anomalies)
            return
        is_corrupt = any(each.kind is AnomalyKind.CORRUPT for each in anomalies)
        pauses = self._reads if is_corrupt else self._looks
        if pauses.pausing(segment_id):
            return
        pauses.failed(segment_id)
        damaged = self._faults(record.metadata, read=is_corrupt)
        if damaged is None:
            return
        whole = tuple(each for each in anomalies if each.object_key not in damaged)
        self._clear(segment_id, whole)
        if not damaged:
            self._forget(segment_id)
        elif segment_id not in self._damaged:
            self._damaged.add(segment_id)
            for key, reason in damaged.items():
                _log.warning(
                    "found a damaged stored object",
                    extra={"segment_id": segment_id, "object": key, "reason": reason},
                )

    def _faults(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool
    ) -> Mapping[str, str] | None:
        """The damaged objects, each with the reason; None if that cannot be said now."""
        deadline_ms = self._clock.monotonic_ms() + _CHECK_TIMEOUT_MS
        attempt = BoundedAttempt(self._clock, deadline_ms, self._stopping.is_set)
        try:
            faults = self._storage.check_objects(metadata, read=read, attempt=attempt)
        except (FencedError, RetriableError) as error:
            extra = {"segment_id": metadata.segment_id, "error": error}
            _log.info("stored objects not checked", extra=extra)
            return None
        return {fault.object_key: fault.reason for fault in faults}

    def _clear(self, segment_id: RemoteLogSegmentId, anomalies: Iterable[Anomaly]) -> None:
        for anomaly in anomalies:
            self._metadata.clear_anomaly(segment_id.topic_id_partition, anomaly.id)
            extra = {"segment_id": segment_id, "object": anomaly.object_key}
            _log.info("cleared the anomaly of a stored object", extra=extra)

    def _forget(self, segment_id: RemoteLogSegmentId) -> None:
        self._damaged.discard(segment_id)
        self._looks.ended(segment_id)
        self._reads.ended(segment_id)


def _by_segment(anomalies: Iterable[Anomaly]) -> Iterable[tuple[UUID, tuple[Anomaly, ...]]]:
    found: dict[UUID, tuple[Anomaly, ...]] = {}
    for anomaly in anomalies:
        found[anomaly.segment] = (*found.get(anomaly.segment, ()), anomaly)
    return found.items()
