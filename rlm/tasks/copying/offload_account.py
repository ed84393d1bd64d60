"""Records the account of each offload segment (PIP-76), so that operators can follow it.

    Assigned recorded → the segment's own records and objects → Offloaded or Failed recorded

The account does not decide what is stored. If an operator deletes offload segments, the account
selects the segments, and their own records decide whether they are deleted. If the assignment
cannot be recorded, the attempt ends; no object exists yet. A later failure to record does not end
the attempt. After a crash or an error, the next cycle completes the accounts from the segments' own
records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from rlm.facts.local_log import LogPosition
from rlm.source.log_source import OpenPart
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlm.tasks.leadership.stream_state import StreamState
from rlmm.events.offload_segment import OffloadSegmentChanged, offload_segments
from rlmm.state.offload_segments import (
    DriverProperty,
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, short_keys

_log = logging.getLogger(__name__)


class OffloadAccount:
    """Writes the accounts of a led partition's offload segments.

    Only one stream may use the object at a time. `state` remembers whether the accounts are
    complete.
    """

    def __init__(
        self,
        ports: Ports,
        lead: PartitionLead,
        state: StreamState,
        driver_metadata: tuple[DriverProperty, ...] = (),
    ) -> None:
        """Record `driver_metadata` with each segment: it identifies this manager's store."""
        self._lead = lead
        self._tip = lead.topic_id_partition
        self._state = state
        self._metadata = ports.metadata
        self._source = ports.source
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._driver_metadata = driver_metadata

    def assign(
        self, lineage: Lineage, started: RemoteLogSegmentMetadata, first: OpenPart
    ) -> OffloadSegmentRecord:
        """Complete the accounts of earlier attempts, then record that a segment begins at `first`.

        `started` is the segment's own record, which is written later. Raises RetriableError if the
        metadata topic cannot be read or written, or refuses the assignment.
        """
        segment_id = started.segment_id.id
        assigned = OffloadSegmentRecord(
            id=segment_id,
            status=OffloadSegmentStatus.ASSIGNED,
            writer=self._lead.writer,
            assigned_ms=self._clock.wall_ms(),
            begin=OffloadPosition(
                ledger_id=first.file_base_offset,
                entry_id=first.first_entry_id,
                offset=first.offsets.start_offset,
            ),
            segment_ids=(segment_id,),
            driver_metadata=self._driver_metadata,
            objects=short_keys(started.object_keys),
        )
        self.complete(lineage, lambda: frozenset({segment_id}))
        self._publish(assigned)
        return assigned

    def complete(self, lineage: Lineage, in_flight: Callable[[], frozenset[UUID]]) -> None:
        """Complete the accounts of ended segments: once per claim, and after a failure to record.

        `in_flight` returns the segments that this process is writing. Raises RetriableError if the
        metadata topic cannot be read or written; the next call continues.
        """
        missing_count = self._state.missing_accounts()
        if missing_count is None:
            return
        accounts = offload_segments(self._metadata, self._tip)
        running = in_flight()  # It is read after the accounts: any segment that it lacks has ended.
        begins = {each.begin.offset: each.begin for each in accounts}
        ended = [
            self._is_ended(each, begins, lineage) for each in accounts if each.id not in running
        ]
        if all(ended):
            self._state.mark_account_complete(missing_count)

    def _is_ended(
        self,
        account: OffloadSegmentRecord,
        begins: Mapping[int, OffloadPosition],
        lineage: Lineage,
    ) -> bool:
        """Return whether the account's segment has ended; if so, complete the account."""
        if account.status is OffloadSegmentStatus.OFFLOADED:
            return True
        segment_id = RemoteLogSegmentId(topic_id_partition=self._tip, id=account.id)
        record = self._metadata.segment(segment_id)
        state = None if record is None else record.metadata.state
        if record is not None and state is SegmentState.COPY_SEGMENT_FINISHED:
            end_offset = record.metadata.offsets.end_offset
            end = begins.get(end_offset) or self._end_position(end_offset, lineage)
            self._publish(self._stored(account, end))
        elif state is SegmentState.COPY_SEGMENT_STARTED:
            return False
        elif account.status is OffloadSegmentStatus.ASSIGNED:
            self._publish(replace(account, status=OffloadSegmentStatus.FAILED))
        return True

    def _end_position(self, end_offset: int, lineage: Lineage) -> OffloadPosition:
        """Return the position after the last batch.

        The log may no longer contain that batch: it was trimmed, truncated after an election, or
        lost with its disk. Its data is stored, so the end offset is certain. The position is then
        that of a log segment that begins at the end offset, as if the broker had rolled.
        """
        last = LogPosition(offset=end_offset - 1)
        try:
            with self._source.open_part(self._tip, last, end_offset, lineage, max_bytes=1) as part:
                if part.following.offset == end_offset:
                    return _position(part.following)
        except TieredStorageError as error:
            _log.info(
                LogLine(
                    "cannot read an offload segment's end from the log: recording only its offset",
                    topic_partition=self._tip,
                    offset=end_offset,
                    error=error,
                )
            )
        return OffloadPosition(ledger_id=end_offset, entry_id=0, offset=end_offset)

    def _stored(self, segment: OffloadSegmentRecord, end: OffloadPosition) -> OffloadSegmentRecord:
        return replace(
            segment,
            status=OffloadSegmentStatus.OFFLOADED,
            offloaded_ms=self._clock.wall_ms(),
            end=end,
        )

    def record_offloaded(self, assigned: OffloadSegmentRecord, end: LogPosition) -> None:
        """Record that the segment is stored up to a position."""
        self._note(self._stored(assigned, _position(end)))

    def record_failed(self, assigned: OffloadSegmentRecord) -> None:
        """Record that the segment was given up."""
        self._note(replace(assigned, status=OffloadSegmentStatus.FAILED))

    def leave_unknown(self) -> None:
        """Leave it to a later cycle to find out what became of the segment."""
        self._state.miss_account()

    def _note(self, segment: OffloadSegmentRecord) -> None:
        try:
            self._publish(segment)
        except TieredStorageError as error:
            self._state.miss_account()
            _log.info(
                LogLine(
                    "cannot record the end of an offload segment: the next cycle tries again",
                    topic_partition=self._tip,
                    segment_id=segment.id,
                    error=error,
                )
            )

    def _publish(self, segment: OffloadSegmentRecord) -> None:
        event = OffloadSegmentChanged(
            event_id=self._new_id(), topic_id_partition=self._tip, segment=segment
        )
        result = self._metadata.publish(event)
        if not result.accepted:
            raise RetriableError(
                "cannot record an offload segment: the metadata refuses it",
                segment_id=segment.id,
                reason=result.refusal,
            )


def _position(end: LogPosition) -> OffloadPosition:
    return OffloadPosition(ledger_id=end.file_base_offset, entry_id=end.entry_id, offset=end.offset)
