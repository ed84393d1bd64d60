"""Derives ordered actions from a view, each with its reason. Pure.

Lanes carry out copies, merges and deletions. A partition's log start moves before the segments
below it are deleted. A cycle trims a local log after it has started the other actions of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rlm.facts.local_log import LocalSegment
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
from rlm.policy.stream.deletion import find_replacement, replaced_streamed
from rlm.policy.stream.merging import (
    SegmentMerge,
    merged_segments,
    next_merge,
    waiting_merges,
)
from rlm.policy.stream.permit import StreamPermit, stream_permit
from rlm.policy.stream.reuse import awaited_streams
from rlm.policy.trim_gate import TrimDecision, decide_trim
from rlm.policy.view import PartitionView
from rlmm.events.pause import PausableTask
from rlmm.spi import SegmentRecord
from rlmm.state.gaps import RecordedGap
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import SegmentState

_REPLACED = "damaged: other segments contain the records"
_GIVEN_UP = "damaged: an operator accepted the loss"
_MERGED = "merged: another segment contains the records"
_REQUESTED = "streamed: an operator requested the deletion, and other segments contain the records"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceLogStart:
    """Represents a new log start to publish. The segments below it are deleted in a later cycle.

    `is_expiry`: retention moves it, so a read lease taken before the publication blocks it.
    """

    offset: int
    reason: str
    is_expiry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSegment:
    """Represents a deletion of a segment's objects to start or continue.

    `is_damaged`: the reason is damage. The segments `replaced_by` contain its readable records,
    except those in recorded gaps. When the deletion starts, the damage and these segments are
    checked again.
    """

    record: SegmentRecord
    reason: str
    is_damaged: bool = False
    replaced_by: tuple[RemoteLogSegmentId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Represents all actions for a partition now; any part may be empty.

    `gaps` are all gaps of the partition, to be recorded; None if there is nothing to record.
    `losses` become gaps after a second check has found their objects damaged. `waiting_merges` are
    all merges that are due, even if none may begin now.
    """

    copies: tuple[LocalSegment, ...] = ()
    stream: StreamPermit | None = None
    repair: Repair = field(default_factory=Repair)
    merge: SegmentMerge | None = None
    waiting_merges: tuple[SegmentMerge, ...] = ()
    log_start: AdvanceLogStart | None = None
    deletions: tuple[DeleteSegment, ...] = ()
    purges: tuple[SegmentRecord, ...] = ()
    gaps: tuple[RecordedGap, ...] | None = None
    losses: tuple[AcceptedLoss, ...] = ()
    trim: TrimDecision = field(default_factory=TrimDecision)
    expiry_blocked: Blocked | None = None


def plan(view: PartitionView) -> Plan:
    """Return the actions for a view.

    An unowned view, or one with a newer record, has no actions: only what blocks trims is returned.
    """
    if not view.is_owned or view.newer is not None:
        return Plan(trim=decide_trim(view))
    if PausableTask.DELETE in view.paused:
        return _without_deletions(view)
    log_start, blocked_log_start = _log_start(view)
    deletions, blocked_deletion = _deletions(view)
    merges = waiting_merges(view)
    return Plan(
        copies=copy_candidates(view),
        stream=stream_permit(view),
        repair=_repair(view),
        merge=next_merge(view, merges),
        waiting_merges=merges,
        log_start=log_start,
        deletions=deletions,
        expiry_blocked=blocked_deletion or blocked_log_start,
        purges=purgeable(view),
        gaps=gaps_to_record(view),
        losses=accepted_losses(view),
        trim=decide_trim(view),
    )


def _repair(view: PartitionView) -> Repair:
    """Return what to copy again: damaged segments, else the segments of requested deletions."""
    repair = find_repair(view)
    return repair if repair.segments else find_replacement(view)


def _without_deletions(view: PartitionView) -> Plan:
    """Return a plan that expires nothing and deletes no object, not even of unfinished copies."""
    started = None if view.state.log_start_offset is not None else _log_start(view)[0]
    return Plan(
        copies=copy_candidates(view),
        stream=stream_permit(view),
        repair=find_repair(view),
        waiting_merges=waiting_merges(view),
        log_start=started,
        expiry_blocked=Blocked(reason="paused"),
        gaps=gaps_to_record(view),
        losses=accepted_losses(view),
        trim=decide_trim(view),
    )


def _log_start(view: PartitionView) -> tuple[AdvanceLogStart | None, Blocked | None]:
    """Return the new log start, and what blocks expiry.

    A partition's first log start is its local start, or its lowest stored offset if that is lower:
    an external start may have moved the local start since that offset was copied.
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
        offset, lease = log_start_within_leases(view.read_leases, current, cut.offset)
        if offset > current:
            wanted = AdvanceLogStart(offset=offset, reason=cut.reason, is_expiry=True)
        blocked = _blocked_by_cycle_share(view, cut) if lease is None else blocked_by_lease(lease)
    requested = _requested_start(view, current)
    if requested is not None and (wanted is None or wanted.offset < requested):
        wanted = AdvanceLogStart(offset=requested, reason="records deleted by a client")
    return wanted, blocked


def _blocked_by_cycle_share(view: PartitionView, cut: ExpiryCut) -> Blocked | None:
    if not cut.waiting_count:
        return None
    values = {
        "waiting_segments": cut.waiting_count,
        "max_percent_per_cycle": view.limits.expiry_max_percent,
    }
    return Blocked(reason="share_per_cycle", values=values)


def _requested_start(view: PartitionView, current: int) -> int | None:
    """Return the offset below which a client deleted records, if it is above the log start.

    The broker accepted the deletion, so the offset was not above the high watermark. An unclean
    election may lower the high watermark, which then limits the offset.
    """
    requested = view.state.log_start_requested_offset
    if requested is None:
        return None
    offset = min(requested, view.offsets.high_watermark)
    return offset if offset > current else None


def _deletions(view: PartitionView) -> tuple[tuple[DeleteSegment, ...], Blocked | None]:
    """Return the deletions to start or continue, and what blocks the first blocked one."""
    awaited = {record.metadata.segment_id for record in awaited_streams(view)}
    found = [
        DeleteSegment(record=record, reason="copy did not finish")
        for record in dangling_copies(view)
        if record.metadata.segment_id not in awaited
    ]
    grace_ms = view.limits.unreferenced_grace_ms
    kinds = (
        (started_deletions(view), "deletion did not finish"),
        (
            () if view.is_diverged else below_log_start(view),
            f"below log start {view.state.log_start_offset}",
        ),
        (
            unreferenced(view),
            f"out of the lineage for longer than remote.unreferenced.grace.ms={grace_ms}",
        ),
        (removable_after_disabling(view), "tiering disabled, remote data deleted"),
    )
    wanted = [
        DeleteSegment(record=record, reason=reason)
        for records, reason in kinds
        for record in records
        if record.metadata.segment_id not in awaited
    ]
    wanted.extend(
        DeleteSegment(
            record=each.record, reason=reason, is_damaged=True, replaced_by=each.replaced_by
        )
        for each, reason in _damaged(view)
    )
    wanted.extend(
        DeleteSegment(record=each.record, reason=_REQUESTED, replaced_by=each.replaced_by)
        for each in replaced_streamed(view)
    )
    wanted.extend(
        DeleteSegment(record=each.record, reason=_MERGED, replaced_by=each.replaced_by)
        for each in _not_in(wanted, merged_segments(view))
    )
    holding: Blocked | None = None
    for action in wanted:
        blocked = _blocked_deletion(view, action.record)
        if blocked is None:
            found.append(action)
        holding = holding or blocked
    return tuple(found), holding


def _not_in(
    deletions: Sequence[DeleteSegment], found: Iterable[ReplacedSegment]
) -> tuple[ReplacedSegment, ...]:
    """Return the segments of `found` that `deletions` does not contain."""
    ids = {each.record.metadata.segment_id for each in deletions}
    return tuple(each for each in found if each.record.metadata.segment_id not in ids)


def _damaged(view: PartitionView) -> tuple[tuple[ReplacedSegment, str], ...]:
    """Return the damaged segments that may be deleted, each once, with the reason."""
    replaced = replaced_segments(view)
    ids = {each.record.metadata.segment_id for each in replaced}
    lost = (each for each in lost_segments(view) if each.record.metadata.segment_id not in ids)
    return (*((each, _REPLACED) for each in replaced), *((each, _GIVEN_UP) for each in lost))


def _blocked_deletion(view: PartitionView, record: SegmentRecord) -> Blocked | None:
    """Return the lease or the gateway that blocks a deletion; None if nothing does.

    A gateway blocks a deletion until it has applied the record that starts it. Nothing blocks the
    deletion of a stream that never finished: no reader knows the stream.
    """
    if record.metadata.is_open:
        return None
    lease = lease_on(view.read_leases, record.metadata.offsets)
    if lease is not None:
        return blocked_by_lease(lease)
    started = record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
    behind = gateway_behind(view.gateways, record.changed_at) if started else None
    return None if behind is None else Blocked(reason="gateway_behind", values=behind)
