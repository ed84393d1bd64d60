"""Selects the segments to copy, oldest first, and explains lag and blocked copies. Pure.

In an unstreamed partition, the active segment is copied only after no record was written to it for
`idle_copy_ms`. Its committed records are then stored as a separate segment. Once the active segment
is rolled, the rest of its file is stored as another segment, which begins where the first one ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlm.facts.local_log import CommittedTail, LocalSegment, RolledSegment
from rlm.policy.blocked import Blocked, blocked_by_log
from rlm.policy.view import PartitionView
from rlmm.events.pause import PausableTask
from rlmm.events.policy import CopyLagSince, PolicyState, TopicPolicy
from rsm.segment.ranges import OffsetRange

COPYING_STATES = frozenset({PolicyState.ACTIVE, PolicyState.DISABLING})


def offload_end_offset(view: PartitionView) -> int:
    """Return the end of the rolled segments wholly below the requested offload offset.

    Returns 0 if there are none (PIP-17's asyncOffloadPrefix). A stream stores all committed records
    below that offset.
    """
    requested = view.state.offload_requested_offset or 0
    if view.is_streamed:
        return min(requested, view.copy_end_offset)
    ends = (segment.offsets.end_offset for segment in view.local.rolled)
    return max((end for end in ends if end <= requested), default=0)


def storable_end_offset(view: PartitionView) -> int:
    """Return the end of the rolled segments; for a stream, the end of its committed records."""
    return view.copy_end_offset if view.is_streamed else view.local.active_base_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Represents the rolled segments that are not stored; the active segment never counts."""

    segments: int
    bytes: int


def not_stored(view: PartitionView) -> tuple[RolledSegment, ...]:
    """Return rolled segments that reach above the covered end, ascending.

    Returns only the rest of a partly stored segment, whose first part was copied while the segment
    was active, or by an earlier leader with other segment bounds.
    """
    covered = view.covered_end_offset
    return tuple(_rest(view, s) for s in view.local.rolled if s.offsets.end_offset > covered)


def _rest(view: PartitionView, segment: RolledSegment) -> RolledSegment:
    """Return the unstored part; the whole segment if nothing above the local start is stored."""
    covered = view.covered_end_offset
    if covered <= max(segment.offsets.start_offset, view.local_start_offset):
        return segment
    return segment.rest(covered)


def idle_part(view: PartitionView) -> CommittedTail | None:
    """Return the unstored committed records of an idle active segment; None if there are none.

    Also returns None unless all rolled segments are stored, because copies are made in order.
    """
    local, idle_ms = view.local, view.limits.idle_copy_ms
    if view.is_streamed or idle_ms < 0 or view.policy.state is not PolicyState.ACTIVE:
        return None
    start_offset = max(view.covered_end_offset, local.active_base_offset)
    if start_offset >= view.copy_end_offset or not_stored(view):
        return None
    if view.moment.wall_ms - local.active_written_ms < max(idle_ms, _least_age_ms(view)):
        return None
    return CommittedTail(
        file_base_offset=local.active_base_offset,
        offsets=OffsetRange(start_offset=start_offset, end_offset=view.copy_end_offset),
        size_bytes=local.active_size_bytes,
    )


def _least_age_ms(view: PartitionView) -> int:
    """Return the copy lag's time limit, which also delays an idle segment (KIP-1241)."""
    return max(0, view.policy.effective_copy_lag_ms)


def copy_candidates(view: PartitionView) -> tuple[LocalSegment, ...]:
    """Return segments to copy now, oldest first: rolled, not stored, wholly below min(HW, LSO).

    Copies are made in order, so the first segment that is still blocked ends the list. Returns an
    idle part alone. A streamed partition has no candidates: its stream stores rolled segments too
    (rlm/policy/stream).
    """
    if view.is_streamed or copying_forbidden(view) is not None:
        return ()
    if (idle := idle_part(view)) is not None:
        return (idle,)
    candidates = []
    for segment in not_stored(view):
        if _not_yet(view, segment) is not None:
            break
        candidates.append(segment)
    return tuple(candidates)


def copy_blocked(view: PartitionView) -> Blocked | None:
    """Return what blocks the oldest unstored segment; None if nothing does.

    For a stream, returns what blocks its oldest unstored committed records.
    """
    if view.is_streamed and view.covered_end_offset < view.copy_end_offset:
        return copying_forbidden(view) or _failing(view, view.covered_end_offset)
    waiting = not_stored(view)
    if not waiting:
        idle = idle_part(view)
        if idle is None:
            return None
        return copying_forbidden(view) or _failing(view, idle.offsets.start_offset)
    first = waiting[0]
    failing = _failing(view, first.offsets.start_offset)
    return copying_forbidden(view) or failing or _not_yet(view, first)


def lag(view: PartitionView) -> Lag:
    """Return the rolled segments that are not stored, even if they must not be copied now."""
    behind = not_stored(view)
    return Lag(segments=len(behind), bytes=sum(segment.size_bytes for segment in behind))


def copying_forbidden(view: PartitionView) -> Blocked | None:
    """Return what blocks every copy of this partition; None if nothing does."""
    if not view.is_owned:
        return Blocked(reason="not_owner")
    if view.newer is not None:
        return Blocked(reason="newer_record")
    if view.policy.state not in COPYING_STATES:
        return Blocked(reason="policy_not_active", values={"state": view.policy.state.name})
    if PausableTask.COPY in view.paused:
        return Blocked(reason="paused")
    if view.state.deletion is not None:
        return Blocked(reason="partition_deleted")
    return blocked_by_log(view)


def _failing(view: PartitionView, base_offset: int) -> Blocked | None:
    failure = view.copy_failure
    if not view.is_store_reachable:
        return Blocked(reason="store_unreachable")
    if failure is None:
        return None
    values: dict[str, int | str] = {
        "base_offset": base_offset,
        "attempts": failure.attempts,
        "cause": failure.cause,
        "error": failure.error,
    }
    reason = "corrupt" if failure.is_corrupt else "failing"
    return Blocked(reason="stopped" if failure.is_final else reason, values=values)


def _not_yet(view: PartitionView, segment: RolledSegment) -> Blocked | None:
    end_offset = segment.offsets.end_offset
    if end_offset <= view.copy_end_offset:
        return _delayed(view, segment)
    values = {
        "segment_end_offset": end_offset,
        "last_stable_offset": view.offsets.last_stable_offset,
        "high_watermark": view.offsets.high_watermark,
    }
    return Blocked(reason="not_stable_yet", values=values)


def _young_since_ms(policy: TopicPolicy, segment: RolledSegment) -> int:
    is_since_roll = policy.copy_lag_since is CopyLagSince.ROLL
    return segment.rolled_ms if is_since_roll else segment.max_timestamp_ms


def _delayed(view: PartitionView, segment: RolledSegment) -> Blocked | None:
    """Return the copy lag that delays a segment; None if either lag has passed (KIP-1241).

    The age is that of the newest record, or the time since the roll if the policy says so.
    Offloads, streams and the end of tiering ignore the lag. Timestamps in the future count as old.
    A lag of 0 delays nothing; a lag of -1 never passes.
    """
    policy = view.policy
    lag_ms, lag_bytes = policy.effective_copy_lag_ms, policy.effective_copy_lag_bytes
    if view.is_streamed or policy.state is not PolicyState.ACTIVE:
        return None
    if segment.offsets.end_offset <= (view.state.offload_requested_offset or 0):
        return None
    age_ms = view.moment.wall_ms - _young_since_ms(policy, segment)
    newer_bytes = view.local.active_size_bytes + sum(
        s.size_bytes for s in view.local.rolled if s.offsets > segment.offsets
    )
    is_old = lag_ms >= 0 and not 0 <= age_ms < lag_ms
    if is_old or 0 <= lag_bytes <= newer_bytes:
        return None
    values = {
        "age_ms": age_ms,
        "remote.copy.lag.ms": lag_ms,
        "newer_bytes": newer_bytes,
        "remote.copy.lag.bytes": lag_bytes,
    }
    return Blocked(reason="copy_lag", values=values)
