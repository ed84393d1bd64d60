"""Copies one segment in a fixed order of effects.

    lead confirmed, still in the log → segment opened → COPY_SEGMENT_STARTED accepted
    → not stored by us before
    → objects written and verified → file unchanged, lead confirmed again
    → COPY_SEGMENT_FINISHED accepted

The started event names every object before its first byte, so a crash leaves no object that no
record names (PIP-17). Only followers truncate. A file that its broker leads before the first byte
and after the last cannot have changed while it was read. The copier publishes nothing after it sees
that the lead is lost. It deletes an attempt that cannot finish; if that fails, the next leader
deletes it.
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
from rlmm.events.segment import SegmentEvent
from rsm.segment.clock import Clock
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.errors import (
    FencedError,
    RetriableError,
    StoppedError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.spi import CopiedSegment, CopyAttempt

_log = logging.getLogger(__name__)

# Kafka's setting of this name (KIP-917).
CUSTOM_METADATA_MAX_BYTES = "remote.log.metadata.custom.metadata.max.bytes"
DEFAULT_CUSTOM_METADATA_MAX_BYTES = 128


class BoundedAttempt(CopyAttempt):
    """Represents a copy attempt with a monotonic deadline. Thread-safe.

    It ends when the process is `stopping`, or no longer `leads` the partition if it has to.
    """

    def __init__(
        self,
        clock: Clock,
        deadline_ms: int,
        stopping: Callable[[], bool],
        *,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._stopping = stopping
        self._leads = leads

    def check(self) -> None:
        if self._stopping():
            raise StoppedError("copy given up: the process stops")
        if not self._leads():
            raise FencedError("copy given up: the process no longer leads")
        if self._clock.monotonic_ms() > self._deadline_ms:
            raise RetriableError("copy given up: past its deadline")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrder:
    """Represents one segment to copy, with its lead, its lineage and its time limit.

    `segment_id` is new for each attempt. The attempt ends once the process is `stopping`, or no
    longer `leads`. `replaces` are the finished segments with the same offsets that were known when
    the copy was decided; some of them are damaged.
    """

    lead: PartitionLead
    segment_id: UUID
    segment: LocalSegment
    lineage: Lineage
    timeout_ms: int
    stopping: Callable[[], bool]
    leads: Callable[[], bool]
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
        """Copy without a rate limit if `throttle` is None. Report the copied bytes to `pace`."""
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

        Raises FencedError if the lead is lost, or the segment was deleted or stored in the
        meantime. Raises StoppedError if the process stops. Raises CorruptError for bad bytes in the
        log or the store, UnsupportedError if every attempt would fail, and RetriableError
        otherwise. After an error, the metadata lists the attempt as unfinished if its start was
        recorded.
        """
        deadline_ms = self._clock.monotonic_ms() + order.timeout_ms
        attempt = BoundedAttempt(self._clock, deadline_ms, order.stopping, leads=order.leads)
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
            LogLine(
                "copied segment",
                topic_partition=tip,
                base_offset=finished.offsets.start_offset,
                end_offset=finished.offsets.end_offset,
                bytes=finished.segment_size_bytes,
                segment_id=finished.segment_id,
            )
        )
        return finished

    def _require_not_stored(
        self,
        started: RemoteLogSegmentMetadata,
        log_start_offset: int,
        replaces: frozenset[UUID],
    ) -> None:
        """Raise FencedError if an attempt of this claim stored the segment and its answer was lost.

        The metadata topic is read up to the started event. A stored part of the file does not count
        if its records are deleted from the log. Neither does a damaged segment that this copy
        replaces.
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
        """Limit the size: every process keeps it as long as the segment exists (KIP-917)."""
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
        """Delete the objects on an error of this kind, which proves that the copy did not finish.

        Another leader may have deleted the attempt before its objects were written, and does not
        check again.
        """
        try:
            yield
        except kind:
            try:
                self._storage.delete_log_segment_data(stored)
            except TieredStorageError as error:
                _log.warning(
                    LogLine(
                        "objects of a failed copy are left",
                        segment_id=stored.segment_id,
                        error=error,
                    )
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
        """Publish a state of the copy; return its broker time. FencedError if it is refused."""
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
    """Raise UnsupportedError for unplanned objects: a crash would leave them without a record."""
    planned, found = ({each.key for each in record.objects} for record in (started, stored))
    if found != planned:
        raise UnsupportedError(
            "segment cannot be stored: its objects are not the planned ones",
            missing=sorted(planned - found),
            unplanned=sorted(found - planned),
        )


def _with_known_epochs(order: CopyOrder, log_start_offset: int) -> CopyOrder:
    """Remove the epochs below a log start inside the segment, where they are only a guess.

    A broker rewrites its first entry to the log start. If no manager claimed that epoch before, its
    real start is unknown, and lower records in the file are not corrupt. The claim with that guess
    stays recorded, and the log start may have moved since. So every epoch with a recorded start
    inside the segment, at or below the log start, may be a guess. A part that is to start at the
    log start may start below it, with the batch that contains the log start.
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
