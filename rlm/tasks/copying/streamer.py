"""Streams a partition's log into one segment, in a fixed order of effects.

    lead confirmed → first part opened → objects named
    → offload segment assigned (PIP-76's account)
    → COPY_SEGMENT_STARTED accepted, without an end
    → not stored by this claim before
    → for each part: lead confirmed, part opened, its bytes appended, its file unchanged
    → the end is decided → objects sealed and verified → still the same store → lead confirmed
    again → COPY_SEGMENT_FINISHED accepted, with the end → account says offloaded, or else failed

Unlike a copy (rlm/tasks/copying/copier.py), a stream starts before its end is known (PIP-76). The
metadata records it like an ordinary segment. Each confirmation of the lead returns the high
watermark and the last stable offset, which bound the next part. Only followers truncate: the log
stays the same while the broker leads in one epoch. Nothing counts as stored until the metadata
accepts COPY_SEGMENT_FINISHED. After an error, the next attempt begins at the same offset. It reuses
what the failed attempt has sent (earlier_streams.py), or the manager deletes those objects.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from rlm.facts.local_log import LogPosition
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.stream.ending import EndReason, StreamProgress, greatest_bytes
from rlm.policy.stream.permit import OPEN_BYTES, check_interval_ms
from rlm.source.log_part import JoinedParts
from rlm.source.log_source import OpenPart
from rlm.tasks.context.attempt import BoundedAttempt
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.store_witness import WrongStoreError
from rlm.tasks.copying.copy_records import CopyRecords, covering, known_epochs, with_copied
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledContent
from rlm.tasks.copying.earlier_streams import EarlierStreams
from rlm.tasks.copying.offload_account import OffloadAccount
from rlm.tasks.leadership.partition_lead import PartitionLead, confirm_lead
from rlmm.state.offload_segments import OffloadSegmentRecord
from rsm.segment.batches.batch import NO_TIMESTAMP
from rsm.segment.epochs import Lineage
from rsm.segment.errors import FencedError, RetriableError, TieredStorageError
from rsm.segment.local_segment import SizedSource
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.offload_settings import OffloadSettings
from rsm.segment.ranges import OffsetRange
from rsm.spi import CopyAttempt, PlannedObjects, SegmentWriter

_log = logging.getLogger(__name__)

_NO_END_OFFSET = (1 << 63) - 1
_LONGEST_NAP_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOrder:
    """Represents one segment to stream, which begins at a position.

    The stream may reuse what the `earlier` streams have sent; if None, it reuses nothing.
    `waited_ms` is how long the oldest record was known before the stream started.
    `stored_from_offset` is the first stored offset above `begin`; None if there is none.
    `timeout_ms` includes the rollover time. `limits` may return lower limits later. The attempt
    ends once the process is `stopping` or no longer `leads`. After each part and each pause,
    `progressed` receives the progress, and `ending` decides whether the segment ends.
    """

    lead: PartitionLead
    account: OffloadAccount
    segment_id: UUID
    begin: LogPosition
    lineage: Lineage
    earlier: EarlierStreams | None
    limits: Callable[[], OffloadSettings]
    waited_ms: int
    stored_from_offset: int | None
    timeout_ms: int
    stopping: Callable[[], bool]
    leads: Callable[[], bool]
    ending: Callable[[StreamProgress], EndReason | None]
    progressed: Callable[[StreamProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedCopy:
    """Represents a stored segment. If `is_caught_up`, no records from `following` onward wait."""

    metadata: RemoteLogSegmentMetadata
    following: LogPosition
    is_caught_up: bool


@dataclass(slots=True, kw_only=True)
class _OpenSegment:
    """Represents the segment that is being written."""

    assigned: OffloadSegmentRecord
    started: RemoteLogSegmentMetadata
    deadline_ms: int
    writer: SegmentWriter
    joined: JoinedParts
    following: LogPosition
    ledger_id: int | None = None


class Streamer:
    """Streams segments of one broker to one store. Thread-safe: one call per partition at a time.

    Memory: one piece of the log, the segment's indexes, and the buffers of the store's upload.
    """

    def __init__(
        self,
        ports: Ports,
        throttle: CopyThrottle | None = None,
        *,
        custom_metadata_max_bytes: int,
    ) -> None:
        """Stream without a rate limit if `throttle` is None."""
        self._records = CopyRecords(ports, custom_metadata_max_bytes=custom_metadata_max_bytes)
        self._throttle = throttle
        self._broker = ports.broker
        self._source = ports.source
        self._storage = ports.storage
        self._clock = ports.clock

    def stream(self, order: StreamOrder) -> StreamedCopy:
        """Stream one segment and return it as stored. Raises the errors of `Copier.copy`."""
        started_ms = self._clock.monotonic_ms()
        attempt = BoundedAttempt(
            self._clock, started_ms + order.timeout_ms, order.stopping, leads=order.leads
        )
        offsets = confirm_lead(self._broker, order.lead)
        if order.begin.offset < offsets.log_start_offset:
            raise FencedError(
                "cannot stream: the position was deleted from the broker's log",
                log_start=offsets.log_start_offset,
            )
        wanted = OffsetRange(start_offset=order.begin.offset, end_offset=_NO_END_OFFSET)
        lineage = known_epochs(order.lineage, wanted, offsets.log_start_offset, is_whole_file=False)
        order = replace(order, lineage=lineage)
        with self._open_part(order, order.begin, offsets, 0) as first:
            segment = self._assign_and_begin(order, first, offsets, attempt)
            with self._failing(order, segment):
                self._append(order, segment, first, attempt)
        with self._failing(order, segment):
            is_caught_up, reason = self._append_until_the_end(
                order, segment, offsets, started_ms, attempt
            )
            stored = self._seal(order, segment, attempt)
        finished = self._finish(order, segment, stored)
        tip = order.lead.topic_id_partition
        order.account.record_offloaded(segment.assigned, segment.following)
        _log.info(
            LogLine(
                "streamed segment",
                topic_partition=tip,
                base_offset=finished.offsets.start_offset,
                end_offset=finished.offsets.end_offset,
                bytes=finished.segment_size_bytes,
                ended_by=reason.value,
                segment_id=finished.segment_id,
            )
        )
        return StreamedCopy(
            metadata=finished, following=segment.following, is_caught_up=is_caught_up
        )

    @contextmanager
    def _failing(self, order: StreamOrder, segment: _OpenSegment) -> Iterator[None]:
        """Abort the writer on any error; also record an ordinary error in the account."""
        try:
            yield
        except BaseException as error:
            segment.writer.abort(error)
            if isinstance(error, Exception):
                order.account.record_failed(segment.assigned)
            raise

    def _assign_and_begin(
        self, order: StreamOrder, first: OpenPart, offsets: PartitionOffsets, attempt: CopyAttempt
    ) -> _OpenSegment:
        started = self._planned(order, first.offsets.start_offset)
        assigned = order.account.assign(order.lineage, started, first)
        try:
            return self._begin(order, assigned, started, offsets, attempt)
        except Exception:
            order.account.record_failed(assigned)
            raise

    def _planned(self, order: StreamOrder, base_offset: int) -> RemoteLogSegmentMetadata:
        """Return the segment's metadata at its start, with the names of its objects."""
        return self._records.started(
            order.lead,
            order.segment_id,
            OffsetRange(start_offset=base_offset, end_offset=base_offset + 1),
            covering(order.lineage, base_offset),
            size_bytes=0,
            max_timestamp_ms=NO_TIMESTAMP,
            open_most_bytes=greatest_bytes(order.limits()),
        )

    def _begin(
        self,
        order: StreamOrder,
        assigned: OffloadSegmentRecord,
        started: RemoteLogSegmentMetadata,
        offsets: PartitionOffsets,
        attempt: CopyAttempt,
    ) -> _OpenSegment:
        """Record the start and open the writer. The base offset is that of the first batch."""
        append_time_ms = self._records.publish(started, copy_timeout_ms=order.timeout_ms)
        self._records.require_not_stored(
            started,
            OffsetRange(start_offset=order.begin.offset, end_offset=_NO_END_OFFSET),
            offsets.log_start_offset,
        )
        planned = PlannedObjects(layout=started.layout, objects=started.objects)
        writer = self._storage.open_segment_writer(started.segment_id, planned, attempt)
        if order.earlier is not None:
            order.earlier.offer_to(writer)
        return _OpenSegment(
            assigned=assigned,
            started=started,
            deadline_ms=append_time_ms + order.timeout_ms,
            writer=writer,
            joined=JoinedParts(started.offsets.start_offset),
            following=order.begin,
        )

    def _append_until_the_end(
        self,
        order: StreamOrder,
        segment: _OpenSegment,
        offsets: PartitionOffsets,
        started_ms: int,
        attempt: CopyAttempt,
    ) -> tuple[bool, EndReason]:
        """Append parts until the segment ends; return whether it is caught up, and why it ends.

        `offsets` bounded the first part. While the broker does not answer or no part can be opened,
        this method appends nothing. It then only decides whether the segment ends.
        """
        is_caught_up, is_answered = False, True
        end_offset = offsets.committed_end_offset
        looked_ms, looked_bytes = started_ms, 0
        while True:
            now_ms = self._clock.monotonic_ms()
            progress = StreamProgress(
                offsets=segment.joined.offsets,
                size_bytes=segment.joined.size_bytes,
                open_ms=now_ms - started_ms,
                waited_ms=now_ms - started_ms + order.waited_ms,
                is_caught_up=is_caught_up,
            )
            order.progressed(progress)
            reason = order.ending(progress)
            if reason is not None:
                return segment.following.offset >= end_offset, reason
            if is_caught_up or not is_answered:
                pause_ms = check_interval_ms(
                    order.limits().segment_rollover_ms,
                    grown_bytes=progress.size_bytes - looked_bytes,
                    during_ms=now_ms - looked_ms,
                )
                looked_ms, looked_bytes = now_ms, progress.size_bytes
                self._nap(now_ms + pause_ms, attempt)
            attempt.check()
            with ExitStack() as opened:
                try:
                    offsets = confirm_lead(self._broker, order.lead)
                    part = self._enter_next_part(opened, order, segment, offsets)
                except RetriableError:  # No part was begun, so the segment stays open.
                    is_answered = False
                    continue
                is_answered = True
                end_offset = offsets.committed_end_offset
                if part is not None:
                    self._append(order, segment, part, attempt)
            is_caught_up = segment.following.offset >= end_offset

    def _enter_next_part(
        self,
        opened: ExitStack,
        order: StreamOrder,
        segment: _OpenSegment,
        offsets: PartitionOffsets,
    ) -> OpenPart | None:
        """Open the next part; return None if the segment contains all committed records."""
        if offsets.committed_end_offset <= segment.following.offset:
            return None
        return opened.enter_context(
            self._open_part(order, segment.following, offsets, segment.joined.size_bytes)
        )

    @contextmanager
    def _open_part(
        self, order: StreamOrder, begin: LogPosition, offsets: PartitionOffsets, size_bytes: int
    ) -> Iterator[OpenPart]:
        """Open the next part, which ends before the next stored record and the end of the reuse.

        It ends later only if a batch crosses that offset: no other segment would store the batch.
        """
        open_below = partial(
            self._source.open_part,
            order.lead.topic_id_partition,
            begin,
            lineage=order.lineage,
            max_bytes=max(1, min(order.limits().segment_max_bytes - size_bytes, OPEN_BYTES)),
        )
        reuse_end = None if order.earlier is None else order.earlier.end_offset
        bounds = (each for each in (order.stored_from_offset, reuse_end) if each is not None)
        above = min((each for each in bounds if begin.offset < each), default=None)
        end_offset = offsets.committed_end_offset
        with ExitStack() as opened:
            if above is None or above >= end_offset:
                part = opened.enter_context(open_below(end_offset=end_offset))
            else:
                try:
                    part = opened.enter_context(open_below(end_offset=above))
                except RetriableError:
                    part = opened.enter_context(open_below(end_offset=end_offset))
            yield part

    def _append(
        self, order: StreamOrder, segment: _OpenSegment, part: OpenPart, attempt: CopyAttempt
    ) -> None:
        if part.file_base_offset != segment.ledger_id:
            segment.writer.begin_ledger(part.file_base_offset, part.first_entry_id)
            segment.ledger_id = part.file_base_offset
        if order.earlier is not None:
            order.earlier.limit(segment.writer, part.offsets)
        content: SizedSource = part.log
        if self._throttle is not None:
            content = ThrottledContent(source=content, throttle=self._throttle, attempt=attempt)
        for piece in content.chunks():
            attempt.check()
            segment.writer.append(piece)
        part.verify_unchanged()
        segment.joined.append(part)
        segment.following = part.following

    def _nap(self, until_ms: int, attempt: CopyAttempt) -> None:
        """Wait for the next check in short pauses, so that the end of the attempt ends the wait."""
        while (left_ms := until_ms - self._clock.monotonic_ms()) > 0:
            attempt.check()
            self._clock.sleep_ms(min(left_ms, _LONGEST_NAP_MS))

    def _finish(
        self, order: StreamOrder, segment: _OpenSegment, stored: RemoteLogSegmentMetadata
    ) -> RemoteLogSegmentMetadata:
        """Record the end. Only a refusal by the metadata proves that the segment is not stored."""
        try:
            return self._records.finish(stored, copy_deadline_ms=segment.deadline_ms)
        except FencedError:
            order.account.record_failed(segment.assigned)
            raise
        except Exception:
            order.account.leave_unknown()
            raise

    def _seal(
        self, order: StreamOrder, segment: _OpenSegment, attempt: CopyAttempt
    ) -> RemoteLogSegmentMetadata:
        joined = segment.joined
        companions = joined.companions(order.lineage)
        closed = replace(
            segment.started,
            offsets=joined.offsets,
            segment_size_bytes=joined.size_bytes,
            max_timestamp_ms=joined.max_timestamp_ms,
            segment_leader_epochs=order.lineage.within(joined.offsets),
            has_transaction_index=companions.transaction_index is not None,
            is_open=False,
        )
        copied = segment.writer.seal(closed, companions)
        stored = with_copied(closed, copied)
        with self._records.discarding(stored, TieredStorageError):
            self._records.require_as_planned(closed, copied)
            self._confirm_at_last(order, stored, attempt)
        return stored

    def _confirm_at_last(
        self, order: StreamOrder, stored: RemoteLogSegmentMetadata, attempt: CopyAttempt
    ) -> None:
        """Confirm the store and the lead; retry until the deadline while either does not answer."""
        while True:
            try:
                self._records.require_same_store(stored)
                confirm_lead(self._broker, order.lead)
                attempt.check()
                return
            except WrongStoreError:
                raise
            except RetriableError:
                now_ms = self._clock.monotonic_ms()
                self._nap(now_ms + check_interval_ms(order.limits().segment_rollover_ms), attempt)
