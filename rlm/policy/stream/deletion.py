"""Plans the deletion of streamed segments for an operator, and the copies before it. Pure.

    offsets that only streamed segments and the broker contain are copied as segments
    → a streamed segment is deleted once other finished segments contain all its offsets

So a finished segment always contains the records, and trims need not wait for the request. If
some offsets of a streamed segment are neither on the broker nor in another finished segment, the
segment is their only copy: it stays despite the request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from rlm.policy.candidates import COPYING_STATES, copying_forbidden
from rlm.policy.repair import Repair, ReplacedSegment, local_copies_of
from rlm.policy.view import PartitionView
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange, missing

_REQUESTED = "streamed: an operator requested the deletion"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedSegment:
    """Represents a streamed segment, and where else its readable offsets are.

    `replaced_by`: the other finished segments that contain some of these offsets. `to_copy`:
    offsets that no other finished segment contains. `only_here`: those of `to_copy` missing on
    the broker, and all offsets cut off by an election.
    """

    metadata: RemoteLogSegmentMetadata
    replaced_by: tuple[RemoteLogSegmentId, ...]
    to_copy: tuple[OffsetRange, ...]
    only_here: tuple[OffsetRange, ...]


def streamed_segments(
    streamed: Collection[UUID],
    stored: Sequence[StoredRange],
    damaged: Collection[UUID],
    *,
    log_start_offset: int,
    local_start_offset: int,
) -> tuple[StreamedSegment, ...]:
    """Return the segments of `streamed` with readable offsets, ascending.

    Neither another segment of `streamed` nor a `damaged` one counts as a copy. Offsets that an
    election cut off are in `only_here`: at these offsets, the log contains other records.
    """
    others = [
        part
        for part in stored
        if part.metadata.segment_id.id not in streamed
        and part.metadata.segment_id.id not in damaged
    ]
    found = []
    for part in stored:
        start_offset = max(part.offsets.start_offset, log_start_offset)
        if part.metadata.segment_id.id not in streamed or start_offset >= part.offsets.end_offset:
            continue
        readable = OffsetRange(start_offset=start_offset, end_offset=part.offsets.end_offset)
        to_copy = missing((other.offsets for other in others), readable)
        found.append(
            StreamedSegment(
                metadata=part.metadata,
                replaced_by=tuple(
                    other.metadata.segment_id
                    for other in others
                    if other.offsets.overlaps(readable)
                ),
                to_copy=to_copy,
                only_here=(*_not_local(to_copy, local_start_offset), *_cut_off(part)),
            )
        )
    return tuple(found)


def find_replacement(view: PartitionView) -> Repair:
    """Return the local segments to copy before the requested deletions.

    Offsets in a damaged segment wait for its repair, so that a store that damages every object is
    not filled with copies.
    """
    if copying_forbidden(view) is not None:
        return Repair()
    damaged = tuple(
        part.offsets for part in view.stored if part.metadata.segment_id.id in view.damage.damaged
    )
    wanted = tuple(
        offsets
        for each in _requested(view)
        if not each.only_here and not any(each.metadata.offsets.overlaps(one) for one in damaged)
        for offsets in each.to_copy
    )
    return local_copies_of(view, wanted, reason=_REQUESTED)


def replaced_streamed(view: PartitionView) -> tuple[ReplacedSegment, ...]:
    """Return the segments of a request whose offsets are all in other finished segments.

    Omits damaged segments: repairs handle those, after they have proved the damage.
    """
    records = {record.metadata.segment_id: record for record in view.segments}
    return tuple(
        ReplacedSegment(record=records[each.metadata.segment_id], replaced_by=each.replaced_by)
        for each in _requested(view)
        if not each.to_copy
        and not each.only_here
        and each.metadata.segment_id.id not in view.damage.damaged
    )


def _requested(view: PartitionView) -> tuple[StreamedSegment, ...]:
    """Return the segments of a request; none while the stored history is in doubt.

    A partition that is streamed again keeps its segments.
    """
    if not view.deletion_requested or view.is_streamed:
        return ()
    if view.is_diverged or view.conflict_offset is not None:
        return ()
    if view.policy.state not in COPYING_STATES:
        return ()
    return streamed_segments(
        view.deletion_requested,
        view.stored,
        view.damage.damaged,
        log_start_offset=view.state.log_start_offset or 0,
        local_start_offset=view.local_start_offset,
    )


def _not_local(ranges: Sequence[OffsetRange], local_start_offset: int) -> Iterator[OffsetRange]:
    for each in ranges:
        if each.start_offset < local_start_offset:
            end_offset = min(each.end_offset, local_start_offset)
            yield OffsetRange(start_offset=each.start_offset, end_offset=end_offset)


def _cut_off(part: StoredRange) -> Iterator[OffsetRange]:
    if part.offsets.end_offset < part.metadata.offsets.end_offset:
        yield OffsetRange(
            start_offset=part.offsets.end_offset, end_offset=part.metadata.offsets.end_offset
        )
