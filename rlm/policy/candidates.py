"""Which rolled segments are to be copied, oldest first, and what of them is behind."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.policy.view import PartitionView
from rlm.source.log_source import LocalSegment
from rlmm.events import PolicyState

COPYING_STATES = frozenset({PolicyState.ACTIVE, PolicyState.DISABLING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Rolled segments that are not stored yet; the active one never counts."""

    segments: int
    bytes: int


def not_stored(view: PartitionView) -> tuple[LocalSegment, ...]:
    """Rolled segments that reach beyond the covered end, ascending.

    A segment that is stored in part (other segment bounds on an earlier leader) is copied whole.
    """
    covered = view.covered_end_offset
    return tuple(s for s in view.local.rolled if s.offsets.end_offset > covered)


def copy_candidates(view: PartitionView) -> tuple[LocalSegment, ...]:
    """Segments to copy now, oldest first: rolled, not stored, wholly below min(HW, LSO).

    The first one that may not be copied yet ends the list: copies are made in order.
    """
    if not view.owned or view.policy.state not in COPYING_STATES:
        return ()
    if view.state.deletion is not None:
        return ()
    if view.conflict_offset is not None or view.untierable is not None:
        return ()
    if view.epochs_known_from_offset is not None:
        return ()
    candidates = []
    for segment in not_stored(view):
        if segment.offsets.end_offset > view.copy_end_offset:
            break
        candidates.append(segment)
    return tuple(candidates)


def lag(view: PartitionView) -> Lag:
    """How much is rolled and not stored, whether or not it may be copied now."""
    behind = not_stored(view)
    return Lag(segments=len(behind), bytes=sum(segment.size_bytes for segment in behind))
