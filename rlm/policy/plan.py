"""From a view to ordered actions, each with its reason. The order of kinds is the order of effects.

Copies first, because everything else waits for them; then the log start, because nothing is deleted
before it has moved; then deletions; the local trim last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rlm.policy.blocked import Blocked
from rlm.policy.candidates import copy_candidates
from rlm.policy.gaps import gaps_to_record
from rlm.policy.leftovers import (
    below_log_start,
    dangling_copies,
    purgeable,
    removable_after_disabling,
    started_deletions,
    unreferenced,
)
from rlm.policy.peers.gateways import gateway_behind
from rlm.policy.read_leases import blocked_by_lease, lease_on, log_start_within_leases
from rlm.policy.repair import (
    AcceptedLoss,
    Repair,
    ReplacedSegment,
    accepted_losses,
    find_repair,
    lost_segments,
    replaced_segments,
)
from rlm.policy.retention import ExpiryCut, expiry_cut
from rlm.policy.trim_gate import TrimDecision, decide_trim
from rlm.policy.view import PartitionView
from rlm.source.log_source import LocalSegment
from rlmm.events.values import PausableTask, RecordedGap
from rlmm.spi import SegmentRecord
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import SegmentState

_REPLACED = "damaged, other segments hold the records"
_GIVEN_UP = "damaged, an operator accepted the loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceLogStart:
    """Publish a new log start; nothing is deleted before it is accepted."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSegment:
    """Delete a stored segment's objects, or carry on deleting them.

    `is_damaged`: it goes because its objects are damaged. `replaced_by` hold its records then; both
    are checked again when its deletion begins.
    """

    record: SegmentRecord
    reason: str
    is_damaged: bool = False
    replaced_by: tuple[RemoteLogSegmentId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is to be done with a partition now; any part may be empty.

    `gaps` are all of the partition's, to be recorded; None: nothing is new of them.
    `losses` become gaps, too, once their objects were found damaged again.
    """

    copies: tuple[LocalSegment, ...] = ()
    repair: Repair = field(default_factory=Repair)
    log_start: AdvanceLogStart | None = None
    deletions: tuple[DeleteSegment, ...] = ()
    purges: tuple[SegmentRecord, ...] = ()
    gaps: tuple[RecordedGap, ...] | None = None
    losses: tuple[AcceptedLoss, ...] = ()
    trim: TrimDecision = field(default_factory=TrimDecision)
    expiry_blocked: Blocked | None = None


def plan(view: PartitionView) -> Plan:
    """Decide. What is not ours, or not wholly understood, gets no action, only what holds it."""
    if not view.owned or view.newer is not None:
        return Plan(trim=decide_trim(view))
    if PausableTask.DELETE in view.paused:
        return _without_deletions(view)
    log_start, blocked_log_start = _log_start(view)
    deletions, blocked_deletion = _deletions(view)
    return Plan(
        copies=copy_candidates(view),
        repair=find_repair(view),
        log_start=log_start,
        deletions=deletions,
        expiry_blocked=blocked_deletion or blocked_log_start,
        purges=purgeable(view),
        gaps=gaps_to_record(view),
        losses=accepted_losses(view),
        trim=decide_trim(view),
    )


def _without_deletions(view: PartitionView) -> Plan:
    """Nothing expires and no object goes, not even those of copies that did not finish."""
    started = None if view.state.log_start_offset is not None else _log_start(view)[0]
    return Plan(
        copies=copy_candidates(view),
        repair=find_repair(view),
        log_start=started,
        expiry_blocked=Blocked(reason="paused"),
        gaps=gaps_to_record(view),
        losses=accepted_losses(view),
        trim=decide_trim(view),
    )


def _log_start(view: PartitionView) -> tuple[AdvanceLogStart | None, Blocked | None]:
    """The first one fixes where the log began when tiering did; later ones are expiry.

    Beside it what holds expiry back. What is stored already is of the log: somebody may have moved
    the broker's start since it was copied.
    """
    current = view.state.log_start_offset
    if current is None:
        stored = (part.offsets.start_offset for part in view.stored)
        started = AdvanceLogStart(
            offset=min((view.local_start_offset, *stored)), reason="log start when tiering began"
        )
        return started, None
    wanted, blocked = None, None
    if (cut := expiry_cut(view)) is not None:
        offset, lease = log_start_within_leases(view, cut.offset)
        wanted = AdvanceLogStart(offset=offset, reason=cut.reason) if offset > current else None
        blocked = _blocked_by_share_groups(view, cut) if lease is None else blocked_by_lease(lease)
    requested = _requested_start(view, current)
    if requested is not None and (wanted is None or wanted.offset < requested):
        wanted = AdvanceLogStart(offset=requested, reason="records deleted by a client")
    return wanted, blocked


def _blocked_by_share_groups(view: PartitionView, cut: ExpiryCut) -> Blocked | None:
    if not cut.waiting_count:
        return None
    values = {
        "waiting_segments": cut.waiting_count,
        "max_percent_per_cycle": view.limits.expiry_max_percent,
    }
    return Blocked(reason="share_per_cycle", values=values)


def _requested_start(view: PartitionView, current: int) -> int | None:
    """What a client deleted below; the broker took it, so it is not above the high watermark.

    Above all the same after an unclean election: then no more than what is committed now.
    """
    requested = view.state.log_start_requested_offset
    if requested is None:
        return None
    offset = min(requested, view.offsets.high_watermark)
    return offset if offset > current else None


def _deletions(view: PartitionView) -> tuple[tuple[DeleteSegment, ...], Blocked | None]:
    """What is to be deleted, and what holds the first of what stays."""
    found = [
        DeleteSegment(record=record, reason="copy did not finish")
        for record in dangling_copies(view)
    ]
    grace_ms = view.limits.unreferenced_grace_ms
    kinds = (
        (started_deletions(view), "deletion did not finish"),
        (
            () if view.diverged else below_log_start(view),
            f"below log start {view.state.log_start_offset}",
        ),
        (
            unreferenced(view),
            f"remote.unreferenced.grace.ms={grace_ms} out of the lineage for longer",
        ),
        (removable_after_disabling(view), "tiering disabled, remote data deleted"),
    )
    wanted = [
        DeleteSegment(record=record, reason=reason)
        for records, reason in kinds
        for record in records
    ]
    wanted.extend(
        DeleteSegment(
            record=each.record, reason=reason, is_damaged=True, replaced_by=each.replaced_by
        )
        for each, reason in _damaged(view)
    )
    holding: Blocked | None = None
    for action in wanted:
        blocked = _blocked_deletion(view, action.record)
        if blocked is None:
            found.append(action)
        holding = holding or blocked
    return tuple(found), holding


def _damaged(view: PartitionView) -> tuple[tuple[ReplacedSegment, str], ...]:
    """Damaged segments that may go, each once, with the reason."""
    replaced = replaced_segments(view)
    ids = {each.record.metadata.segment_id for each in replaced}
    lost = (each for each in lost_segments(view) if each.record.metadata.segment_id not in ids)
    return (*((each, _REPLACED) for each in replaced), *((each, _GIVEN_UP) for each in lost))


def _blocked_deletion(view: PartitionView, record: SegmentRecord) -> Blocked | None:
    """A lease on it, or a gateway that has yet to hear that its deletion has begun."""
    lease = lease_on(view.read_leases, record.metadata.offsets)
    if lease is not None:
        return blocked_by_lease(lease)
    started = record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
    behind = gateway_behind(view.gateways, record.changed_at) if started else None
    return None if behind is None else Blocked(reason="gateway_behind", values=behind)
