"""From a view to ordered actions, each with its reason. The order of kinds is the order of effects.

Copies first, because everything else waits for them; then the log start, because nothing is deleted
before it has moved; then deletions; the local trim last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rlm.policy.candidates import copy_candidates
from rlm.policy.leftovers import (
    begun_deletions,
    below_log_start,
    dangling_copies,
    forgettable,
    removable_after_disabling,
)
from rlm.policy.retention import expiry_cut
from rlm.policy.trim_gate import TrimDecision, decide_trim
from rlm.policy.view import PartitionView
from rlm.source.log_source import LocalSegment
from rlmm.spi import SegmentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceLogStart:
    """Publish a new log start; nothing is deleted before it is accepted."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSegment:
    """Delete a stored segment's objects, or carry on deleting them."""

    record: SegmentRecord
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is to be done with a partition now; any part may be empty."""

    copies: tuple[LocalSegment, ...] = ()
    log_start: AdvanceLogStart | None = None
    deletions: tuple[DeleteSegment, ...] = ()
    forgets: tuple[SegmentRecord, ...] = ()
    trim: TrimDecision = field(default_factory=TrimDecision)


def plan(view: PartitionView) -> Plan:
    """Decide. A partition whose newest claim is not ours gets no action, only what holds it."""
    if not view.owned:
        return Plan(trim=decide_trim(view))
    return Plan(
        copies=copy_candidates(view),
        log_start=_log_start(view),
        deletions=_deletions(view),
        forgets=forgettable(view),
        trim=decide_trim(view),
    )


def _log_start(view: PartitionView) -> AdvanceLogStart | None:
    """The first one fixes where the log began when tiering did; later ones are expiry."""
    if view.state.log_start_offset is None:
        return AdvanceLogStart(
            offset=view.local_start_offset, reason="log start when tiering began"
        )
    cut = expiry_cut(view)
    requested = _requested_start(view)
    if requested is not None and (cut is None or cut.offset < requested):
        return AdvanceLogStart(offset=requested, reason="records deleted by a client")
    return None if cut is None else AdvanceLogStart(offset=cut.offset, reason=cut.reason)


def _requested_start(view: PartitionView) -> int | None:
    """What a client deleted below; the broker took it, so it is not above the high watermark.

    Above all the same after an unclean election: then no more than what is committed now.
    """
    requested, current = view.state.log_start_requested_offset, view.state.log_start_offset
    if requested is None:
        return None
    offset = min(requested, view.offsets.high_watermark)
    return offset if current is None or offset > current else None


def _deletions(view: PartitionView) -> tuple[DeleteSegment, ...]:
    kinds = (
        (dangling_copies(view), "copy did not finish"),
        (begun_deletions(view), "deletion did not finish"),
        (() if view.diverged else below_log_start(view), "below log start"),
        (removable_after_disabling(view), "tiering disabled, remote data deleted"),
    )
    return tuple(
        DeleteSegment(record=record, reason=reason)
        for records, reason in kinds
        for record in records
    )
