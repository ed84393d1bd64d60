"""Decides which broker removes the stored data of a deleted topic's partition, and how. Pure.

    DELETE_PARTITION_MARKED (no new copy starts) → claim → DELETE_PARTITION_STARTED
    → every segment is deleted → running copies have ended, and their objects are deleted again
    → DELETE_PARTITION_FINISHED → the records are purged when no late record can arrive

A running copy may still write objects after its segment is deleted, until its deadline. The removal
does not finish before that deadline, so that the record of the copy names all its objects. A dead
letter keeps its partition in DELETE_PARTITION_STARTED until it is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from rlm.policy.leftovers import has_never_finished
from rlm.policy.peers.gateways import gateway_behind
from rlm.policy.plan import DeleteSegment
from rlm.policy.read_leases import lease_on
from rlm.policy.view import Moment
from rlmm.events.registration import ProcessRegistered, ProcessRole, Registration
from rlmm.registration import live_processes
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rsm.segment.metadata import SegmentState, Writer

_MARKED = RemotePartitionDeleteState.DELETE_PARTITION_MARKED
_STARTED = RemotePartitionDeleteState.DELETE_PARTITION_STARTED
_FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
_DELETED = SegmentState.DELETE_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRemains:
    """Represents the metadata of a deleted topic's partition, and the writer that removes it.

    `gateways` are the live gateways.
    """

    state: PartitionState
    segments: tuple[SegmentRecord, ...]
    writer: Writer
    moment: Moment
    orphan_grace_ms: int
    gateways: tuple[ProcessRegistered, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    """Represents the actions to take now, in this order; any part may be empty.

    `sweeps` are deleted segments whose objects are deleted again before `next_state`.
    """

    should_claim: bool = False
    deletions: tuple[DeleteSegment, ...] = ()
    sweeps: tuple[SegmentRecord, ...] = ()
    next_state: RemotePartitionDeleteState | None = None
    purges: tuple[SegmentRecord, ...] = ()


def plan_removal(remains: PartitionRemains) -> RemovalPlan:
    """Return the next actions; none while the removal has to wait."""
    deletion = remains.state.deletion
    if deletion is None:
        return RemovalPlan(next_state=_MARKED)
    if deletion is _FINISHED:
        return RemovalPlan(purges=_purgeable(remains))
    if deletion is _MARKED:
        return RemovalPlan(should_claim=_is_foreign(remains), next_state=_STARTED)
    left = [record for record in remains.segments if record.metadata.state is not _DELETED]
    if left:
        return RemovalPlan(should_claim=_is_foreign(remains), deletions=_deletions(remains, left))
    unfinished = [record for record in remains.segments if has_never_finished(record)]
    if any(remains.moment.broker_ms <= record.copy_deadline_ms for record in unfinished):
        return RemovalPlan()
    return RemovalPlan(sweeps=tuple(unfinished), next_state=_FINISHED)


def removed_by(
    topic_id: UUID, registrations: Iterable[Registration], *, own_id: int, broker_ms: int
) -> int:
    """Return the broker whose manager removes a topic.

    Managers that know the same live managers choose the same broker. If two managers disagree for a
    moment, both may act: the metadata accepts each change once, from the owner.
    """
    live = live_processes(registrations, ProcessRole.MANAGER, broker_ms)
    ids = sorted({each.broker_id for each in live} | {own_id})
    return ids[topic_id.int % len(ids)]


def _is_foreign(remains: PartitionRemains) -> bool:
    return remains.state.owner != remains.writer


def _deletions(
    remains: PartitionRemains, left: Iterable[SegmentRecord]
) -> tuple[DeleteSegment, ...]:
    """Return the deletions that neither a dead letter, a lease nor a gateway blocks."""
    leases = remains.state.active_leases(remains.moment.broker_ms)
    return tuple(
        DeleteSegment(record=record, reason="topic deleted")
        for record in left
        if not record.is_dead_lettered
        and lease_on(leases, record.metadata.offsets) is None
        and not _may_be_served(remains, record)
    )


def _may_be_served(remains: PartitionRemains, record: SegmentRecord) -> bool:
    started = record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
    return started and gateway_behind(remains.gateways, record.changed_at) is not None


def _purgeable(remains: PartitionRemains) -> tuple[SegmentRecord, ...]:
    return tuple(
        record
        for record in remains.segments
        if remains.moment.broker_ms
        > max(record.copy_deadline_ms, record.changed_ms) + remains.orphan_grace_ms
    )
