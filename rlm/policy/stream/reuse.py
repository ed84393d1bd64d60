"""Finds unfinished streams whose parts the next segment of the stream may reuse. Pure.

Such a stream begins where the next segment begins, and nothing can finish it: it is fenced, or this
process gave it up. Its process may have died, lost the lead, or failed to send a part. Its objects
stay until the next segment no longer needs them, or is stored. If the next segment has not begun,
they stay at most until the deadline of the unfinished stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from rlm.policy.stream.permit import stream_permit
from rlm.policy.view import PartitionView
from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState

_MOST = 8


def reusable_streams(
    records: Iterable[SegmentRecord],
    *,
    begin_offset: int,
    incarnation: UUID,
    broker_ms: int | None,
    spent: Collection[UUID],
) -> tuple[SegmentRecord, ...]:
    """Return the unfinished streams that begin at `begin_offset`, oldest first, at most 8.

    Includes streams of this process that are not fenced yet. Omits `spent` streams, which are no
    longer needed, and streams past their deadlines. If `broker_ms` is None, deadlines do not count.
    """
    found = [
        record
        for record in records
        if record.metadata.is_open
        and record.metadata.offsets.start_offset == begin_offset
        and record.metadata.segment_id.id not in spent
        and not record.is_dead_lettered
        and (broker_ms is None or broker_ms <= record.copy_deadline_ms)
        and _is_ended(record, incarnation)
    ]
    found.sort(key=lambda record: (record.changed_ms, record.metadata.segment_id.id))
    return tuple(found[:_MOST])


def awaited_streams(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Return the unfinished streams whose objects stay for the next segment of the stream."""
    if view.spent_streams is None or not any(each.metadata.is_open for each in view.segments):
        return ()
    begin_offset, broker_ms = _in_flight_begin(view), None
    if begin_offset is None:
        permit = stream_permit(view)
        if permit is None:
            return ()
        begin_offset, broker_ms = permit.begin_offset, view.moment.broker_ms
    return reusable_streams(
        view.segments,
        begin_offset=begin_offset,
        incarnation=view.writer.incarnation,
        broker_ms=broker_ms,
        spent=view.spent_streams,
    )


def _in_flight_begin(view: PartitionView) -> int | None:
    """Return the start offset of the stream that this process sends; None if it sends none.

    That stream may reuse earlier ones until it ends, even if no stream may begin after it.
    """
    for record in view.segments:
        metadata = record.metadata
        if (
            metadata.is_open
            and metadata.state is SegmentState.COPY_SEGMENT_STARTED
            and metadata.segment_id.id in view.in_flight
        ):
            return metadata.offsets.start_offset
    return None


def _is_ended(record: SegmentRecord, incarnation: UUID) -> bool:
    metadata = record.metadata
    if metadata.state is SegmentState.COPY_SEGMENT_STARTED:
        return metadata.writer.incarnation == incarnation
    return metadata.state is SegmentState.DELETE_SEGMENT_STARTED
