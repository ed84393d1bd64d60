"""From a view to ordered actions, each with its reason. The order of kinds is the order of effects.

Copies first, because everything else waits for them; then the log start, because nothing is deleted
before it has moved; then deletions; the local trim last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rlm.policy.candidates import copy_candidates
from rlm.policy.gaps import gaps_to_record
from rlm.policy.leftovers import (
    begun_deletions,
    below_log_start,
    dangling_copies,
    forgettable,
    removable_after_disabling,
)
from rlm.policy.read_leases import ExpiryHeld, held_by, lease_on, log_start_within_leases
from rlm.policy.retention import expiry_cut
from rlm.policy.trim_gate import TrimDecision, decide_trim
from rlm.policy.view import PartitionView
from rlm.source.log_source import LocalSegment
from rlmm.events import PausableTask, RecordedGap
from rlmm.spi import ReadLease, SegmentRecord


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
    """All that is to be done with a partition now; any part may be empty.

    `gaps` are all of the partition's, to be recorded; None: nothing is new of them.
    """

    copies: tuple[LocalSegment, ...] = ()
    log_start: AdvanceLogStart | None = None
    deletions: tuple[DeleteSegment, ...] = ()
    forgets: tuple[SegmentRecord, ...] = ()
    gaps: tuple[RecordedGap, ...] | None = None
    trim: TrimDecision = field(default_factory=TrimDecision)
    expiry_held: ExpiryHeld | None = None


def plan(view: PartitionView) -> Plan:
    """Decide. What is not ours, or not wholly understood, gets no action, only what holds it."""
    if not view.owned or view.newer is not None:
        return Plan(trim=decide_trim(view))
    if PausableTask.DELETE in view.paused:
        return _without_deletions(view)
    log_start, lease_ahead = _log_start(view)
    deletions, lease_behind = _deletions(view)
    lease = lease_behind or lease_ahead
    return Plan(
        copies=copy_candidates(view),
        log_start=log_start,
        deletions=deletions,
        expiry_held=None if lease is None else held_by(lease),
        forgets=forgettable(view),
        gaps=gaps_to_record(view),
        trim=decide_trim(view),
    )


def _without_deletions(view: PartitionView) -> Plan:
    """Nothing expires and no object goes, not even those of copies that did not finish."""
    began = None if view.state.log_start_offset is not None else _log_start(view)[0]
    return Plan(
        copies=copy_candidates(view),
        log_start=began,
        expiry_held=ExpiryHeld(reason="paused"),
        gaps=gaps_to_record(view),
        trim=decide_trim(view),
    )


def _log_start(view: PartitionView) -> tuple[AdvanceLogStart | None, ReadLease | None]:
    """The first one fixes where the log began when tiering did; later ones are expiry.

    Beside it the lease that holds expiry back.
    """
    current = view.state.log_start_offset
    if current is None:
        began = AdvanceLogStart(
            offset=view.local_start_offset, reason="log start when tiering began"
        )
        return began, None
    wanted, lease = None, None
    if (cut := expiry_cut(view)) is not None:
        offset, lease = log_start_within_leases(view, cut.offset)
        wanted = AdvanceLogStart(offset=offset, reason=cut.reason) if offset > current else None
    requested = _requested_start(view)
    if requested is not None and (wanted is None or wanted.offset < requested):
        wanted = AdvanceLogStart(offset=requested, reason="records deleted by a client")
    return wanted, lease


def _requested_start(view: PartitionView) -> int | None:
    """What a client deleted below; the broker took it, so it is not above the high watermark.

    Above all the same after an unclean election: then no more than what is committed now.
    """
    requested, current = view.state.log_start_requested_offset, view.state.log_start_offset
    if requested is None:
        return None
    offset = min(requested, view.offsets.high_watermark)
    return offset if current is None or offset > current else None


def _deletions(view: PartitionView) -> tuple[tuple[DeleteSegment, ...], ReadLease | None]:
    """What is to be deleted, and the lease that holds the first of what stays."""
    found = [
        DeleteSegment(record=record, reason="copy did not finish")
        for record in dangling_copies(view)
    ]
    kinds = (
        (begun_deletions(view), "deletion did not finish"),
        (() if view.diverged else below_log_start(view), "below log start"),
        (removable_after_disabling(view), "tiering disabled, remote data deleted"),
    )
    holding: ReadLease | None = None
    for records, reason in kinds:
        for record in records:
            lease = lease_on(view.read_leases, record.metadata.offsets)
            if lease is None:
                found.append(DeleteSegment(record=record, reason=reason))
            holding = holding or lease
    return tuple(found), holding
