"""Copies one segment: the order of effects, written once.

    lead confirmed, still in the log → segment opened → COPY_SEGMENT_STARTED accepted
    → not stored by us before
    → objects written and verified → file unchanged, lead confirmed again
    → COPY_SEGMENT_FINISHED accepted

The started event names every object before its first byte, so whatever a crash leaves is found by
it and deleted (PIP-17). The lead is confirmed before the first and after the last byte because only
followers truncate: a file read while its broker led throughout cannot have changed under the
reader. Nothing is published after a loss of the lead was seen. What can no longer be finished is
deleted here if it can be, else by whoever leads next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.source.log_source import LocalSegment, OpenSegment
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_pace import CopyPace, PacedContent
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledContent
from rlm.tasks.leadership.partition_lead import PartitionLead, confirm_lead
from rlmm.events.values import SegmentEvent
from rsm.segment.clock import Clock
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.errors import (
    FencedError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.spi import CopiedSegment, CopyAttempt

_log = logging.getLogger(__name__)

# As Kafka's setting of this name (KIP-917).
CUSTOM_METADATA_MAX_BYTES = "remote.log.metadata.custom.metadata.max.bytes"
DEFAULT_CUSTOM_METADATA_MAX_BYTES = 128


class BoundedAttempt(CopyAttempt):
    """A copy attempt that ends at a monotonic deadline or when `stopped` says so. Thread-safe."""

    def __init__(self, clock: Clock, deadline_ms: int, stopped: Callable[[], bool]) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._stopped = stopped

    def check(self) -> None:
        if self._stopped():
            raise FencedError("copy given up: the process stops or no longer leads")
        if self._clock.monotonic_ms() > self._deadline_ms:
            raise RetriableError("copy given up: past its deadline")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrder:
    """One segment to copy: for whom, in which lineage, and how long it may take.

    `segment_id` is fresh for each attempt. `stopped` turns true when the attempt has lost its
    right to go on. `replaces` are finished segments with the same offsets that were known when the
    copy was decided: some of them are damaged.
    """

    lead: PartitionLead
    segment_id: UUID
    segment: LocalSegment
    lineage: Lineage
    timeout_ms: int
    stopped: Callable[[], bool]
    replaces: frozenset[UUID] = frozenset()


class Copier:
    """Copies segments of one broker to one store. Thread-safe: one call per partition at a time."""

    def __init__(
        self,
        ports: Ports,
        throttle: CopyThrottle | None = None,
        *,
        pace: CopyPace | None = None,
        custom_metadata_max_bytes: int = DEFAULT_CUSTOM_METADATA_MAX_BYTES,
    ) -> None:
        """`throttle` None: as fast as it goes. `pace` is told what is moved."""
        self._custom_metadata_max_bytes = custom_metadata_max_bytes
        self._throttle = throttle
        self._pace = pace
        self._broker = ports.broker
        self._source = ports.source
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id

    def copy(self, order: CopyOrder) -> RemoteLogSegmentMetadata:
        """Copy one segment and return its finished metadata.

        Raises FencedError (lead lost, deleted or stored meanwhile: nothing more may be done),
        CorruptError (local bytes or the store's are bad), UnsupportedError (another attempt would
        fail, too), RetriableError. After an error the attempt is dangling in the metadata, if it
        was recorded at all.
        """
        deadline_ms = self._clock.monotonic_ms() + order.timeout_ms
        attempt = BoundedAttempt(self._clock, deadline_ms, order.stopped)
        tip = order.lead.topic_id_partition
        offsets = confirm_lead(self._broker, order.lead)
        end_offset = order.segment.offsets.end_offset
        if end_offset > min(offsets.high_watermark, offsets.last_stable_offset):
            raise RetriableError("segment reaches above the last stable offset", end=end_offset)
        if end_offset <= offsets.log_start_offset:
            raise FencedError("deleted from the broker's log", log_start=offsets.log_start_offset)
        order = _with_known_epochs(order, offsets.log_start_offset)
        with self._source.open_segment(
            tip, order.segment, order.lineage, offsets.last_stable_offset
        ) as opened:
            started = self._describe(order, opened)
            append_time_ms = self._publish(started, copy_timeout_ms=order.timeout_ms)
            self._require_not_stored(started, offsets.log_start_offset, order.replaces)
            data = self._paced(opened.data, attempt)
            copied = self._store(started, data, attempt)
            stored = replace(
                started, objects=copied.objects, custom_metadata=copied.custom_metadata
            )
            with self._discarding(stored, TieredStorageError):
                _require_planned_objects(started, stored)
                self._require_custom_metadata_fits(stored)
                opened.verify_unchanged()
                confirm_lead(self._broker, order.lead)
                attempt.check()
        finished = stored.in_state(
            SegmentState.COPY_SEGMENT_FINISHED, event_timestamp_ms=self._clock.wall_ms()
        )
        with self._discarding(stored, FencedError):
            self._publish(finished, copy_deadline_ms=append_time_ms + order.timeout_ms)
        _log.info(
            "copied segment",
            extra={
                "topic_partition": tip,
                "base_offset": finished.offsets.start_offset,
                "end_offset": finished.offsets.end_offset,
                "bytes": finished.segment_size_bytes,
                "segment_id": finished.segment_id,
            },
        )
        return finished

    def _require_not_stored(
        self,
        started: RemoteLogSegmentMetadata,
        log_start_offset: int,
        replaces: frozenset[UUID],
    ) -> None:
        """FencedError if an attempt of this claim has stored it, and only the answer was lost.

        All that was in the metadata topic before the started event is known by now. A part of a
        file that was stored before, and deleted from the log since, is not what is stored now. Nor
        is a damaged segment that this copy replaces.
        """
        records = self._metadata.list_remote_log_segments(
            started.topic_id_partition,
            states=(SegmentState.COPY_SEGMENT_FINISHED,),
            from_offset=max(started.offsets.start_offset, log_start_offset),
        )
        for found in (record.metadata for record in records):
            is_other = found.segment_id.id not in {started.segment_id.id, *replaces}
            is_ours = found.writer == started.writer
            if is_other and is_ours and found.offsets.overlaps(started.offsets):
                raise FencedError("stored by an earlier attempt", segment=found.segment_id)

    def _require_custom_metadata_fits(self, stored: RemoteLogSegmentMetadata) -> None:
        """Every process keeps it for the segment's whole life, so it must be small (KIP-917)."""
        size = len(stored.custom_metadata)
        if size > self._custom_metadata_max_bytes:
            raise UnsupportedError(
                "segment cannot be stored: its custom metadata is too large. "
                f"Raise {CUSTOM_METADATA_MAX_BYTES}",
                custom_metadata_bytes=size,
                custom_metadata_max_bytes=self._custom_metadata_max_bytes,
            )

    def _paced(self, data: LogSegmentData, attempt: CopyAttempt) -> LogSegmentData:
        log = data.log
        if self._throttle is not None:
            log = ThrottledContent(source=log, throttle=self._throttle, attempt=attempt)
        if self._pace is not None:
            log = PacedContent(source=log, pace=self._pace)
        return replace(data, log=log)

    def _store(
        self, started: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        try:
            return self._storage.copy_log_segment_data(started, data, attempt)
        except RetriableError:
            if self._pace is not None:
                self._pace.refused()
            raise

    @contextmanager
    def _discarding(
        self, stored: RemoteLogSegmentMetadata, kind: type[TieredStorageError]
    ) -> Iterator[None]:
        """Delete the objects on an error of this kind: one that tells that they were not finished.

        Another leader may have deleted the attempt before they were written, and not look again.
        """
        try:
            yield
        except kind:
            try:
                self._storage.delete_log_segment_data(stored)
            except TieredStorageError as error:
                _log.warning(
                    "objects of a failed copy are left",
                    extra={"segment_id": stored.segment_id, "error": error},
                )
            raise

    def _describe(self, order: CopyOrder, opened: OpenSegment) -> RemoteLogSegmentMetadata:
        offsets = opened.data.offsets
        segment_id = RemoteLogSegmentId(
            topic_id_partition=order.lead.topic_id_partition, id=order.segment_id
        )
        size_bytes = opened.data.log.length_bytes
        stored_as = self._storage.plan_objects(
            segment_id, offsets.start_offset, size_bytes=size_bytes
        )
        return RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=offsets,
            max_timestamp_ms=opened.max_timestamp_ms,
            segment_size_bytes=size_bytes,
            segment_leader_epochs=order.lineage.within(offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=order.lead.writer,
            event_timestamp_ms=self._clock.wall_ms(),
            layout=stored_as.layout,
            objects=stored_as.objects,
            has_transaction_index=opened.data.companions.transaction_index is not None,
        )

    def _publish(
        self,
        metadata: RemoteLogSegmentMetadata,
        *,
        copy_timeout_ms: int = 0,
        copy_deadline_ms: int = 0,
    ) -> int:
        """Publish a step of the copy; the broker's time of it. FencedError if it was refused."""
        result = self._metadata.publish(
            SegmentEvent(
                event_id=self._new_id(),
                metadata=metadata,
                copy_timeout_ms=copy_timeout_ms,
                copy_deadline_ms=copy_deadline_ms,
            )
        )
        if not result.accepted:
            raise FencedError(
                "copy refused by the metadata",
                state=metadata.state.name,
                segment=metadata.segment_id,
                reason=result.refusal,
            )
        return result.append_time_ms


def _require_planned_objects(
    started: RemoteLogSegmentMetadata, stored: RemoteLogSegmentMetadata
) -> None:
    """A crash before the finished event would leave an object that no record names."""
    planned, found = ({each.key for each in record.objects} for record in (started, stored))
    if found != planned:
        raise UnsupportedError(
            "segment cannot be stored: its objects are not those that were planned",
            missing=sorted(planned - found),
            unplanned=sorted(found - planned),
        )


def _with_known_epochs(order: CopyOrder, log_start_offset: int) -> CopyOrder:
    """Leave out the epochs below a log start inside the segment, where they are but a guess.

    A broker rewrites its first entry to the log start. If nobody had claimed that epoch before, it
    is not known where below it began, and what the file still holds from there is no corruption.
    The claim that knew no better stays on record, and the log start may have moved on since: any
    epoch that is said to begin within the segment and not above the log start may be one of those.
    A part that is to begin at the log start may begin below, with the batch that holds it.
    """
    entries, offsets = order.lineage.entries, order.segment.offsets
    if not offsets.start_offset <= log_start_offset < offsets.end_offset:
        return order
    low = offsets.start_offset if order.segment.is_whole_file else -1
    if not any(low < entry.start_offset <= log_start_offset for entry in entries):
        return order
    first = max(entry.epoch for entry in entries if entry.start_offset <= log_start_offset)
    later = (entry for entry in entries if entry.start_offset > log_start_offset)
    known = (EpochEntry(epoch=first, start_offset=log_start_offset), *later)
    return replace(order, lineage=Lineage(entries=known))
