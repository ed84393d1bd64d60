"""Decides which damaged segments to copy again, to record as lost, or to delete. Pure.

Only damage that this manager itself found counts; a report alone starts none of this. While the
broker has the offsets of a damaged segment, and no undamaged finished segment contains them, the
manager copies them again under a new segment id. It deletes the damaged segment only when finished
segments with whole objects contain all of its readable offsets. After an operator accepts the loss,
a recorded gap may cover the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.facts.local_log import CommittedTail, LocalSegment, RolledSegment
from rlm.policy.candidates import copying_forbidden
from rlm.policy.view import PartitionView
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.ranges import OffsetRange, missing

MAX_DAMAGED_COPIES = 3
"""Offsets with more damaged segments than this are copied again only after a pause."""

DAMAGED_AGAIN_PAUSE_MS = 3_600_000
"""That pause lasts this long after the last of these segments was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Represents local segments to copy again, and the finished segments that they overlap.

    `replaces` are the ids of these finished segments; they do not prevent the copy. `reason` is why
    the local segments are copied again.
    """

    segments: tuple[LocalSegment, ...] = ()
    replaces: frozenset[UUID] = frozenset()
    reason: str = ""


def find_repair(view: PartitionView) -> Repair:
    """Return local segments with offsets that only damaged segments contain, oldest first."""
    if not view.damage.damaged or copying_forbidden(view) is not None:
        return Repair()
    return local_copies_of(view, _lost_ranges(view), reason="damaged")


def local_copies_of(view: PartitionView, wanted: tuple[OffsetRange, ...], *, reason: str) -> Repair:
    """Return the local segments with any of these offsets, oldest first."""
    segments = tuple(_on_broker(view, wanted))
    if not segments:
        return Repair()
    overlapped = frozenset(
        part.metadata.segment_id.id
        for part in view.stored
        if any(part.metadata.offsets.overlaps(each.offsets) for each in segments)
    )
    return Repair(segments=segments, replaces=overlapped, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedSegment:
    """Represents a segment to delete, and the segments that contain its readable offsets.

    Recorded gaps may cover some of the readable offsets of a lost segment.
    """

    record: SegmentRecord
    replaced_by: tuple[RemoteLogSegmentId, ...]


def replaced_segments(view: PartitionView) -> tuple[ReplacedSegment, ...]:
    """Return damaged segments whose readable offsets are all in segments with whole objects."""
    if not view.damage.damaged or view.is_diverged or view.conflict_offset is not None:
        return ()
    return _replaced(view, _damaged_parts(view), ())


def _replaced(
    view: PartitionView, parts: Iterable[StoredRange], gaps: tuple[OffsetRange, ...]
) -> tuple[ReplacedSegment, ...]:
    """Return the parts whose readable offsets are all in gaps or whole segments.

    A segment without readable offsets expires with the log start instead.
    """
    whole = [part for part in view.stored if part.metadata.segment_id.id in view.damage.whole]
    records = {record.metadata.segment_id: record for record in view.segments}
    return tuple(
        ReplacedSegment(
            record=records[part.metadata.segment_id],
            replaced_by=tuple(
                other.metadata.segment_id for other in whole if other.offsets.overlaps(part.offsets)
            ),
        )
        for part in parts
        if (readable := _above_log_start(view, part.offsets))
        and not missing(sorted((*gaps, *(other.offsets for other in whole))), readable)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLoss:
    """Represents a lost segment, and its lost offsets to record as a gap."""

    record: SegmentRecord
    offsets: tuple[OffsetRange, ...]


def accepted_losses(view: PartitionView) -> tuple[AcceptedLoss, ...]:
    """Return offsets of lost segments that no repair can restore and no gap records yet.

    Returns only offsets that the acceptance names. Omits a range while the broker has a part of it:
    that part is copied again first.
    """
    if view.is_diverged or view.conflict_offset is not None:
        return ()
    records = {record.metadata.segment_id: record for record in view.segments}
    gaps = tuple(gap.offsets for gap in view.state.gaps)
    found = []
    for part in _given_up(view):
        offsets = tuple(
            new
            for lost in lost_offsets(view, part)
            if lost.end_offset <= view.local_start_offset
            for accepted in _accepted_of(view, part, lost)
            for new in missing(gaps, accepted)
        )
        if offsets:
            found.append(AcceptedLoss(record=records[part.metadata.segment_id], offsets=offsets))
    return tuple(found)


def lost_segments(view: PartitionView) -> tuple[ReplacedSegment, ...]:
    """Return lost segments whose readable offsets are all in recorded gaps or whole segments."""
    if view.is_diverged or view.conflict_offset is not None:
        return ()
    gaps = tuple(gap.offsets for gap in view.state.gaps)
    return _replaced(view, _given_up(view), gaps)


def lost_offsets(view: PartitionView, part: StoredRange) -> tuple[OffsetRange, ...]:
    """Return the readable offsets of a segment that no undamaged finished segment contains."""
    sound = (
        other.offsets
        for other in view.stored
        if other.metadata.segment_id.id not in view.damage.damaged
    )
    return missing(sound, _above_log_start(view, part.offsets))


def _lost_ranges(view: PartitionView) -> tuple[OffsetRange, ...]:
    """Return lost offsets; omits those with too many damaged segments until the pause ends."""
    parts = tuple(_damaged_parts(view))
    copied_ms = {record.metadata.segment_id: record.changed_ms for record in view.segments}
    found: list[OffsetRange] = []
    for part in parts:
        copies = [
            copied_ms[other.metadata.segment_id]
            for other in parts
            if part.offsets.overlaps(other.offsets)
        ]
        pause_ms = DAMAGED_AGAIN_PAUSE_MS if len(copies) > MAX_DAMAGED_COPIES else 0
        if view.moment.broker_ms - max(copies) >= pause_ms:
            found.extend(lost_offsets(view, part))
    return tuple(found)


def _damaged_parts(view: PartitionView) -> Iterator[StoredRange]:
    damaged = view.damage.damaged
    return (part for part in view.stored if part.metadata.segment_id.id in damaged)


def _given_up(view: PartitionView) -> Iterator[StoredRange]:
    """Return damaged parts whose loss an operator has accepted."""
    accepted = {
        each.segment for each in view.state.anomalies if each.kind is AnomalyKind.LOSS_ACCEPTED
    }
    return (part for part in _damaged_parts(view) if part.metadata.segment_id.id in accepted)


def _accepted_of(
    view: PartitionView, part: StoredRange, lost: OffsetRange
) -> Iterator[OffsetRange]:
    """Yield the parts of `lost` that an operator accepted as lost with a segment."""
    for anomaly in view.state.anomalies:
        if anomaly.segment == part.metadata.segment_id.id:
            for accepted in anomaly.lost:
                if accepted.overlaps(lost):
                    yield accepted.intersection(lost)


def _above_log_start(view: PartitionView, offsets: OffsetRange) -> OffsetRange:
    start_offset = max(offsets.start_offset, view.state.log_start_offset or 0)
    return replace(offsets, start_offset=min(start_offset, offsets.end_offset))


def _on_broker(view: PartitionView, lost: tuple[OffsetRange, ...]) -> Iterator[LocalSegment]:
    """Yield the local segments that may be copied, each cut to start at its first lost offset."""
    first_offset, end_offset = view.local_start_offset, view.copy_end_offset
    readable = [each for each in lost if each.end_offset > first_offset]
    for segment in view.local.rolled:
        found = [each for each in readable if each.overlaps(segment.offsets)]
        if found and segment.offsets.end_offset <= end_offset:
            yield _from(segment, min(found).start_offset, first_offset)
    base_offset = view.local.active_base_offset
    for each in readable:
        if base_offset < each.end_offset <= end_offset:
            yield CommittedTail(
                file_base_offset=base_offset,
                offsets=replace(each, start_offset=max(each.start_offset, base_offset)),
                size_bytes=view.local.active_size_bytes,
            )


def _from(segment: RolledSegment, lost_offset: int, local_start_offset: int) -> RolledSegment:
    """Return the segment cut to start at the lost offset; uncut if no lower offset is local."""
    if lost_offset <= max(segment.offsets.start_offset, local_start_offset):
        return segment
    return segment.rest(lost_offset)
