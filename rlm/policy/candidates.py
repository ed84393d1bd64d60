"""Which segments are to be copied, oldest first; what is behind, and what holds it.

The segment being written is not copied, but where nobody has written to it for long: then what is
committed of it is, as a segment of its own. When it is rolled at last, the rest of its file follows
from there on, so that the pieces together are the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlm.policy.blocked import Blocked, blocked_by_log
from rlm.policy.view import PartitionView
from rlm.source.log_source import LocalSegment
from rlmm.events.values import CopyLagSince, PausableTask, PolicyState, TopicPolicy
from rsm.segment.ranges import OffsetRange

COPYING_STATES = frozenset({PolicyState.ACTIVE, PolicyState.DISABLING})


def offload_end_offset(view: PartitionView) -> int:
    """The end of what an operator asked to store: rolled segments wholly before the position.

    0 if there are none (PIP-17's asyncOffloadPrefix).
    """
    requested = view.state.offload_requested_offset or 0
    ends = (segment.offsets.end_offset for segment in view.local.rolled)
    return max((end for end in ends if end <= requested), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Rolled segments that are not stored yet; the active one never counts."""

    segments: int
    bytes: int


def not_stored(view: PartitionView) -> tuple[LocalSegment, ...]:
    """Rolled segments that reach beyond the covered end, ascending.

    Of a segment that is stored in part the rest is left: its beginning was copied while it was
    being written, or by an earlier leader with other segment bounds.
    """
    covered = view.covered_end_offset
    return tuple(_rest(view, s) for s in view.local.rolled if s.offsets.end_offset > covered)


def _rest(view: PartitionView, segment: LocalSegment) -> LocalSegment:
    """Whole where nothing of it is stored, also if the log begins inside it: maybe in a batch."""
    covered = view.covered_end_offset
    if covered <= max(segment.offsets.start_offset, view.local_start_offset):
        return segment
    offsets = replace(segment.offsets, start_offset=covered)
    return replace(segment, offsets=offsets, part_of=segment.offsets.start_offset)


def idle_part(view: PartitionView) -> LocalSegment | None:
    """What is committed and not stored of a segment that is not written to any more, if any.

    Only when all that is rolled is stored: copies are made in order.
    """
    local, idle_ms = view.local, view.limits.idle_copy_ms
    if idle_ms < 0 or view.policy.state is not PolicyState.ACTIVE:
        return None
    start_offset = max(view.covered_end_offset, local.active_base_offset)
    if start_offset >= view.copy_end_offset or not_stored(view):
        return None
    if view.moment.wall_ms - local.active_written_ms < max(idle_ms, _least_age_ms(view)):
        return None
    return LocalSegment(
        offsets=OffsetRange(start_offset=start_offset, end_offset=view.copy_end_offset),
        size_bytes=local.active_size_bytes,
        max_timestamp_ms=local.active_written_ms,
        part_of=local.active_base_offset,
        is_active=True,
    )


def _least_age_ms(view: PartitionView) -> int:
    """KIP-1241: what is younger is not copied yet."""
    return max(0, view.policy.effective_copy_lag_ms)


def copy_candidates(view: PartitionView) -> tuple[LocalSegment, ...]:
    """Segments to copy now, oldest first: rolled, not stored, wholly below min(HW, LSO).

    The first one that may not be copied yet ends the list: copies are made in order. An idle part
    is a list of its own.
    """
    if copying_forbidden(view) is not None:
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
    """What holds the oldest segment that is not stored; None if nothing does, or there is none."""
    waiting = not_stored(view)
    if not waiting:
        idle = idle_part(view)
        return None if idle is None else copying_forbidden(view) or _failing(view, idle)
    return copying_forbidden(view) or _failing(view, waiting[0]) or _not_yet(view, waiting[0])


def lag(view: PartitionView) -> Lag:
    """How much is rolled and not stored, whether or not it may be copied now."""
    behind = not_stored(view)
    return Lag(segments=len(behind), bytes=sum(segment.size_bytes for segment in behind))


def copying_forbidden(view: PartitionView) -> Blocked | None:
    """What forbids any copy of this partition."""
    if not view.owned:
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


def _failing(view: PartitionView, segment: LocalSegment) -> Blocked | None:
    failure = view.copy_failure
    if not view.store_reachable:
        return Blocked(reason="store_unreachable")
    if failure is None:
        return None
    values: dict[str, int | str] = {
        "base_offset": segment.offsets.start_offset,
        "attempts": failure.attempts,
        "cause": failure.cause,
        "error": failure.error,
    }
    reason = "corrupt" if failure.corrupt else "failing"
    return Blocked(reason="stopped" if failure.final else reason, values=values)


def _not_yet(view: PartitionView, segment: LocalSegment) -> Blocked | None:
    end_offset = segment.offsets.end_offset
    if end_offset <= view.copy_end_offset:
        return _delayed(view, segment)
    values = {
        "segment_end_offset": end_offset,
        "last_stable_offset": view.offsets.last_stable_offset,
        "high_watermark": view.offsets.high_watermark,
    }
    return Blocked(reason="not_stable_yet", values=values)


def _young_since_ms(policy: TopicPolicy, segment: LocalSegment) -> int:
    if policy.copy_lag_since is CopyLagSince.ROLL and segment.rolled_ms is not None:
        return segment.rolled_ms
    return segment.max_timestamp_ms


def _delayed(view: PartitionView, segment: LocalSegment) -> Blocked | None:
    """KIP-1241: young by either measure is copied later, in time for local retention.

    The age is that of the newest record, or the time since the roll where the policy says so.
    Not what an operator asked for, nor when tiering ends. Timestamps of the future count as old. A
    lag of 0 delays nothing, and one of -1 does not end a delay.
    """
    policy = view.policy
    lag_ms, lag_bytes = policy.effective_copy_lag_ms, policy.effective_copy_lag_bytes
    if policy.state is not PolicyState.ACTIVE:
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
