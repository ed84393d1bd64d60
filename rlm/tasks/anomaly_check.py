"""Checks each stored object that somebody reported as missing or corrupt.

Covers the partitions that this manager leads. An object that is whole ends its anomaly, and so does
a segment that is not finished. The cycle copies damaged segments again (rlm/policy/repair.py). The
check also reads segments with the same offsets: only one that it found whole can replace a damaged
one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Event
from uuid import UUID

from rlm.policy.view import Damage
from rlm.tasks.copier import BoundedAttempt
from rlm.tasks.ports import Ports
from rlm.tasks.retry_pauses import RetryPauses
from rlmm.anomaly import Anomaly, AnomalyKind, AnomalyReported
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.spi import ObjectFault

_log = logging.getLogger(__name__)

_FIRST_PAUSE_MS = 60_000
_LONGEST_READ_PAUSE_MS = 3_600_000
_CHECK_TIMEOUT_MS = 600_000


class AnomalyCheck:
    """One thread's, but for `damage_of`.

    Memory: one entry per segment that is damaged now, and one per segment with the same offsets.

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
        self._new_id = ports.new_id
        self._damaged: set[RemoteLogSegmentId] = set()
        self._whole: set[RemoteLogSegmentId] = set()
        self._found: Mapping[TopicIdPartition, Damage] = {}

    def damage_of(self, tip: TopicIdPartition) -> Damage:
        """What the last checks of a partition found. Thread-safe."""
        return self._found.get(tip, Damage())

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
        self._look_around()
        self._found = _by_partition(self._damaged, self._whole)

    def _look_around(self) -> None:
        """Check the segments that may replace a damaged one."""
        around: dict[RemoteLogSegmentId, RemoteLogSegmentMetadata] = {}
        for segment_id in self._damaged:
            around.update((each.segment_id, each) for each in self._overlapping(segment_id))
        for segment_id in self._whole - around.keys():
            self._whole.discard(segment_id)
            self._looks.ended(segment_id)
        for segment_id, metadata in around.items():
            if not self._stopping.is_set() and not self._looks.pausing(segment_id):
                self._look_at_whole(metadata)

    def _overlapping(self, segment_id: RemoteLogSegmentId) -> Iterator[RemoteLogSegmentMetadata]:
        """Finished segments with offsets of a damaged one that are not known as damaged."""
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
            if other.metadata.segment_id not in self._damaged:
                yield other.metadata

    def _look_at_whole(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Read it the first time, then ask for length and checksum; report what is damaged."""
        segment_id = metadata.segment_id
        self._looks.failed(segment_id)
        faults = self._faults(metadata, read=segment_id not in self._whole)
        if faults is None:
            return
        if not faults:
            self._whole.add(segment_id)
            return
        self._whole.discard(segment_id)
        for fault in faults:
            report_fault(self._metadata, segment_id, fault, self._clock, self._new_id)

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
        faults = self._faults(record.metadata, read=is_corrupt)
        if faults is None:
            return
        damaged = {fault.object_key: fault.reason for fault in faults}
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
    ) -> tuple[ObjectFault, ...] | None:
        """The damaged objects; None if that cannot be said now."""
        deadline_ms = self._clock.monotonic_ms() + _CHECK_TIMEOUT_MS
        attempt = BoundedAttempt(self._clock, deadline_ms, self._stopping.is_set)
        try:
            return self._storage.check_objects(metadata, read=read, attempt=attempt)
        except (FencedError, RetriableError) as error:
            extra = {"segment_id": metadata.segment_id, "error": error}
            _log.info("stored objects not checked", extra=extra)
            return None

    def _clear(self, segment_id: RemoteLogSegmentId, anomalies: Iterable[Anomaly]) -> None:
        for anomaly in anomalies:
            self._metadata.clear_anomaly(segment_id.topic_id_partition, anomaly.id)
            extra = {"segment_id": segment_id, "object": anomaly.object_key}
            _log.info("cleared the anomaly of a stored object", extra=extra)

    def _forget(self, segment_id: RemoteLogSegmentId) -> None:
        self._damaged.discard(segment_id)
        self._looks.ended(segment_id)
        self._reads.ended(segment_id)


def report_fault(
    metadata: RemoteLogMetadataManager,
    segment_id: RemoteLogSegmentId,
    fault: ObjectFault,
    clock: Clock,
    new_id: Callable[[], UUID],
) -> None:
    """Record an object that the manager found damaged, unless it is on record."""
    now_ms = clock.wall_ms()
    anomaly = Anomaly(
        segment=segment_id.id,
        object_key=fault.object_key,
        kind=AnomalyKind.MISSING if fault.is_missing else AnomalyKind.CORRUPT,
        first_ms=now_ms,
        last_ms=now_ms,
        attempts=1,
    )
    tip = segment_id.topic_id_partition
    known = {each.id for each in metadata.partition_state(tip).anomalies}
    if anomaly.id not in known:
        metadata.publish(
            AnomalyReported(event_id=new_id(), topic_id_partition=tip, anomaly=anomaly)
        )


def _by_partition(
    damaged: Iterable[RemoteLogSegmentId], whole: Iterable[RemoteLogSegmentId]
) -> Mapping[TopicIdPartition, Damage]:
    found: dict[TopicIdPartition, tuple[set[UUID], set[UUID]]] = {}
    for position, segments in enumerate((damaged, whole)):
        for each in segments:
            found.setdefault(each.topic_id_partition, (set(), set()))[position].add(each.id)
    return {
        tip: Damage(damaged=frozenset(of_damaged), whole=frozenset(of_whole))
        for tip, (of_damaged, of_whole) in found.items()
    }


def _by_segment(anomalies: Iterable[Anomaly]) -> Iterable[tuple[UUID, tuple[Anomaly, ...]]]:
    found: dict[UUID, tuple[Anomaly, ...]] = {}
    for anomaly in anomalies:
        found[anomaly.segment] = (*found.get(anomaly.segment, ()), anomaly)
    return found.items()
