"""What went from the broker's log before it was stored, and is to be recorded as a gap.

Somebody else's DeleteRecords, or a retention of the broker, moves the local start above what we
trimmed or let expire. What of that is stored is read; the rest is a gap, which readers step over
as they step over what compaction took. The log start is not moved: nobody asked for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm.policy.view import PartitionView
from rlmm.events import GapReason, RecordedGap
from rsm.segment.coverage import StoredRange
from rsm.segment.ranges import OffsetRange


def gaps_to_record(view: PartitionView) -> tuple[RecordedGap, ...] | None:
    """All gaps of the partition, if the metadata lacks any of them; else None."""
    ours = view.moved_from_offset
    if ours is None or view.diverged or view.conflict_offset is not None:
        return None
    lost = missing(view.stored, OffsetRange(start_offset=ours, end_offset=view.local_start_offset))
    return with_gaps(
        view.state.gaps, lost, reason=GapReason.EXTERNAL_START, now_ms=view.moment.wall_ms
    )


def missing(stored: Sequence[StoredRange], within: OffsetRange) -> tuple[OffsetRange, ...]:
    """The parts of a range that no stored range holds; `stored` ascend."""
    found = []
    position = within.start_offset
    for part in stored:
        until_offset = min(part.offsets.start_offset, within.end_offset)
        if until_offset > position:
            found.append(OffsetRange(start_offset=position, end_offset=until_offset))
        position = max(position, part.offsets.end_offset)
    if position < within.end_offset:
        found.append(OffsetRange(start_offset=position, end_offset=within.end_offset))
    return tuple(found)


def with_gaps(
    known: Sequence[RecordedGap],
    lost: Iterable[OffsetRange],
    *,
    reason: GapReason,
    now_ms: int,
) -> tuple[RecordedGap, ...] | None:
    """The known gaps with these, those that touch joined; None if all of it is known already."""
    new = [
        RecordedGap(offsets=offsets, reason=reason, recorded_ms=now_ms)
        for offsets in lost
        if not any(_holds(gap.offsets, offsets) for gap in known)
    ]
    return _joined((*known, *new)) if new else None


def _joined(gaps: Iterable[RecordedGap]) -> tuple[RecordedGap, ...]:
    joined: list[RecordedGap] = []
    for gap in sorted(gaps, key=lambda each: each.offsets):
        before = joined[-1] if joined else None
        if before is None or before.offsets.end_offset < gap.offsets.start_offset:
            joined.append(gap)
            continue
        newer = max(before, gap, key=lambda each: each.recorded_ms)
        joined[-1] = RecordedGap(
            offsets=OffsetRange(
                start_offset=before.offsets.start_offset,
                end_offset=max(before.offsets.end_offset, gap.offsets.end_offset),
            ),
            reason=newer.reason,
            recorded_ms=newer.recorded_ms,
        )
    return tuple(joined)


def _holds(outer: OffsetRange, inner: OffsetRange) -> bool:
    return outer.start_offset <= inner.start_offset and inner.end_offset <= outer.end_offset
