"""Finds offsets that are neither stored nor on the broker, to record them as gaps. Pure.

A user's DeleteRecords, or the broker's retention, can move the local start above the offsets that
`rlm` trimmed or expired. Stored records in that range stay readable. The rest is a gap, which
readers skip like compacted records. `rlm` does not move the log start, because it cannot know
whether a user wanted to delete the stored records too. Accepted losses of damaged segments are also
gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm.policy.repair import AcceptedLoss
from rlm.policy.view import PartitionView
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.ranges import OffsetRange, missing


def gaps_to_record(view: PartitionView) -> tuple[RecordedGap, ...] | None:
    """Return all gaps of the partition if an external start adds one; None if it adds none.

    Also returns None while the log is diverged, or its leader epochs contradict the stored ones.
    """
    if view.is_diverged or view.conflict_offset is not None:
        return None
    now_ms = view.moment.wall_ms
    return with_gaps(view.state.gaps, _taken(view), reason=GapReason.EXTERNAL_START, now_ms=now_ms)


def gaps_of_losses(
    view: PartitionView, losses: Iterable[AcceptedLoss]
) -> tuple[RecordedGap, ...] | None:
    """Return all gaps of the partition, including those of `losses`; None if no loss adds one."""
    lost = sorted(offsets for each in losses for offsets in each.offsets)
    now_ms = view.moment.wall_ms
    return with_gaps(view.state.gaps, lost, reason=GapReason.ACCEPTED_LOSS, now_ms=now_ms)


def _taken(view: PartitionView) -> tuple[OffsetRange, ...]:
    """Return the offsets that an external start removed from the broker before they were stored."""
    moved_from_offset = view.moved_from_offset
    if moved_from_offset is None:
        return ()
    moved = OffsetRange(start_offset=moved_from_offset, end_offset=view.local_start_offset)
    return missing((part.offsets for part in view.stored), moved)


def with_gaps(
    known: Sequence[RecordedGap],
    lost: Iterable[OffsetRange],
    *,
    reason: GapReason,
    now_ms: int,
) -> tuple[RecordedGap, ...] | None:
    """Return the known gaps and the ranges of `lost`; None if known gaps already cover `lost`.

    Joins adjacent gaps that have the same reason. Known gaps keep their reason.
    """
    new = [
        RecordedGap(offsets=part, reason=reason, recorded_ms=now_ms)
        for offsets in lost
        for part in missing((gap.offsets for gap in known), offsets)
    ]
    return _joined((*known, *new)) if new else None


def _joined(gaps: Iterable[RecordedGap]) -> tuple[RecordedGap, ...]:
    joined: list[RecordedGap] = []
    for gap in sorted(gaps, key=lambda each: each.offsets):
        before = joined[-1] if joined else None
        touches = before and gap.offsets.start_offset <= before.offsets.end_offset
        if before is None or not touches or before.reason is not gap.reason:
            joined.append(gap)
            continue
        joined[-1] = RecordedGap(
            offsets=OffsetRange(
                start_offset=before.offsets.start_offset,
                end_offset=max(before.offsets.end_offset, gap.offsets.end_offset),
            ),
            reason=gap.reason,
            recorded_ms=max(before.recorded_ms, gap.recorded_ms),
        )
    return tuple(joined)
