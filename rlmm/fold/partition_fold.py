"""Folds a record about a partition as a whole; rlmm/fold/rules.py lists the rules. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from rlmm.events.anomaly import FOLDED_ANOMALIES_MAX_COUNT, Anomaly, AnomalyKind, AnomalyReported
from rlmm.events.values import (
    GapsRecorded,
    LeadershipClaimed,
    LocalLogTrimmed,
    LogStartAdvanced,
    LogStartRequested,
    LossAccepted,
    OffloadRequested,
    ReadLeaseTaken,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from rlmm.fold.state import FoldState, Refusal
from rlmm.log_starts import LogStart, uncovered
from rlmm.partition_state import PartitionState, ReadLease
from rlmm.positions import TopicRecord
from rlmm.record_keys import RecordKey, RecordKind, partition_subject

_DELETED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
_FIRST_EPOCH = 0


def fold_claim(state: FoldState, step: LeadershipClaimed, offset: int) -> Refusal | None:
    """Fold a claim: the last claim of the highest epoch owns the partition."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.CLAIM, subject, step.event_id, offset)
    if state.partition_deletion(subject) is _DELETED:
        return Refusal.PARTITION_DELETED
    before = state.partition_state(subject)
    if before.owner and step.writer.leader_epoch < before.owner.leader_epoch:
        return Refusal.STALE_EPOCH
    state.put_partition(subject, replace(before, owner=step.writer, lineage=step.lineage))
    return None


def fold_trim(state: FoldState, step: LocalLogTrimmed, offset: int) -> Refusal | None:
    """Fold the owner's trim, unless another known one covers it."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.TRIM, subject, step.event_id, offset)
    before = state.partition_state(subject)
    if before.owner != step.writer:
        return Refusal.NOT_OWNER
    trim = LogStart(step.offset, step.writer.leader_epoch)
    if any(each != trim and each.covers(trim) for each in before.trims):
        return Refusal.BELOW_CURRENT
    trims = uncovered((*before.trims, trim))
    state.put_partition(subject, replace(before, trims=trims, lineage=step.lineage))
    return None


def fold_log_start(state: FoldState, step: LogStartAdvanced, offset: int) -> Refusal | None:
    """Fold the owner's log start, unless another known one covers it."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.LOG_START, subject, step.event_id, offset)
    before = state.partition_state(subject)
    if before.owner != step.writer:
        return Refusal.NOT_OWNER
    start = LogStart(step.offset, step.writer.leader_epoch)
    if any(each != start and each.covers(start) for each in before.log_starts):
        return Refusal.BELOW_CURRENT
    state.put_partition(
        subject, _with_starts(before, (*before.log_starts, start), before.log_start_requests)
    )
    return None


def fold_gaps(state: FoldState, step: GapsRecorded, offset: int) -> Refusal | None:
    """Fold the owner's gaps, which replace the previous ones."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.GAPS, subject, step.event_id, offset)
    before = state.partition_state(subject)
    if before.owner != step.writer:
        return Refusal.NOT_OWNER
    after = replace(before, recorded_gaps=step.gaps, gaps_epoch=step.writer.leader_epoch)
    state.put_partition(subject, after)
    return None


def fold_offload_request(state: FoldState, step: OffloadRequested, offset: int) -> Refusal | None:
    """Fold an offload request, unless its offset is below the known one."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.OFFLOAD_REQUEST, subject, step.event_id, offset)
    if state.partition_deletion(subject) is _DELETED:
        return Refusal.PARTITION_DELETED
    before = state.partition_state(subject)
    current = before.offload_requested_offset
    if current is not None and step.offset < current:
        return Refusal.BELOW_CURRENT
    state.put_partition(subject, replace(before, offload_requested_offset=step.offset))
    return None


def fold_loss_accepted(state: FoldState, step: LossAccepted, offset: int) -> Refusal | None:
    """Fold an accepted loss; its two values are separate maxima, so order does not matter."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.LOSS_ACCEPTED, subject, step.event_id, offset)
    if state.partition_deletion(subject) is _DELETED:
        return Refusal.PARTITION_DELETED
    before = state.partition_state(subject)
    after = replace(
        before,
        accepted_loss_epoch=max(before.accepted_loss_epoch, step.leader_epoch),
        accepted_start_offset=max(before.accepted_start_offset, step.local_start_offset),
    )
    if after == before:
        return Refusal.BELOW_CURRENT
    state.put_partition(subject, after)
    return None


def fold_log_start_request(
    state: FoldState, step: LogStartRequested, offset: int
) -> Refusal | None:
    """Fold a log start request, unless a known log start or request covers it."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.LOG_START_REQUEST, subject, step.event_id, offset)
    if state.partition_deletion(subject) is _DELETED:
        return Refusal.PARTITION_DELETED
    before = state.partition_state(subject)
    epoch = step.leader_epoch
    if epoch < 0:
        epoch = before.owner.leader_epoch if before.owner else _FIRST_EPOCH
    request = LogStart(step.offset, epoch)
    if before.has_covered(request):
        return Refusal.BELOW_CURRENT
    requests = (*before.log_start_requests, request)
    state.put_partition(subject, _with_starts(before, before.log_starts, requests))
    return None


def fold_partition_delete(state: FoldState, step: RemotePartitionDeleteMetadata) -> Refusal | None:
    """Fold the next deletion state, each once and in order; the last one erases the rest."""
    subject = partition_subject(step.topic_id_partition)
    before = state.partition_deletion(subject)
    reached = 0 if before is None else before.value
    if step.state.value != reached + 1:
        return Refusal.STEP_BACK if step.state.value <= reached else Refusal.SKIPPED_STATE
    state.put_partition_deletion(subject, step.state)
    if step.state is _DELETED:
        state.put_partition(subject, PartitionState())
    return None


def fold_read_lease(state: FoldState, step: ReadLeaseTaken, record: TopicRecord) -> Refusal | None:
    """Fold a read lease, which replaces the previous record of its id."""
    subject = partition_subject(step.topic_id_partition)
    _remember(state, RecordKind.READ_LEASE, subject, step.lease_id, record.offset)
    if state.partition_deletion(subject) is _DELETED:
        return Refusal.PARTITION_DELETED
    lease = ReadLease(
        lease_id=step.lease_id,
        offsets=step.offsets,
        expires_ms=record.append_time_ms + step.duration_ms,
        holder=step.holder,
    )
    before = _without_lease(state.partition_state(subject), step.lease_id)
    leases = sorted((*before.read_leases, lease), key=lambda each: each.lease_id)
    state.put_partition(subject, replace(before, read_leases=tuple(leases)))
    return None


def fold_anomaly(state: FoldState, step: AnomalyReported, offset: int) -> Refusal | None:
    """Fold an anomaly, which replaces the previous record of its id; refuse one beyond the limit.

    Compaction affects which ones are kept beyond the limit. That is harmless: no other rule reads
    anomalies, the owner checks the objects itself, and an unrecorded fault is found again.
    """
    subject, anomaly = partition_subject(step.topic_id_partition), step.anomaly
    anomaly_id = anomaly.id
    _remember(state, RecordKind.ANOMALY, subject, anomaly_id, offset)
    if state.partition_deletion(subject) is _DELETED:
        return Refusal.PARTITION_DELETED
    before = state.partition_state(subject)
    known = before.anomalies
    index = _anomaly_index(known, anomaly_id)
    is_known = index < len(known) and known[index].id == anomaly_id
    if not is_known and not _has_room(known, anomaly.kind):
        return Refusal.TOO_MANY
    after = (*known[:index], anomaly, *known[index + is_known :])
    state.put_partition(subject, replace(before, anomalies=after))
    return None


def _anomaly_index(anomalies: Sequence[Anomaly], anomaly_id: UUID) -> int:
    """Return the index for an id in `anomalies`, which are sorted by id; computes few hashes."""
    return bisect_left(anomalies, anomaly_id, key=lambda each: each.id)


def _has_room(anomalies: Sequence[Anomaly], kind: AnomalyKind) -> bool:
    is_accepted = kind is AnomalyKind.LOSS_ACCEPTED
    alike = sum((each.kind is AnomalyKind.LOSS_ACCEPTED) is is_accepted for each in anomalies)
    return alike < FOLDED_ANOMALIES_MAX_COUNT


def _remember(
    state: FoldState, kind: RecordKind, subject: bytes, event_id: UUID, offset: int
) -> None:
    state.put_record_key(RecordKey(kind=kind, subject=subject, event_id=event_id.bytes), offset)


def _with_starts(
    state: PartitionState, starts: Iterable[LogStart], requests: Iterable[LogStart]
) -> PartitionState:
    kept = uncovered(starts)
    return replace(state, log_starts=kept, log_start_requests=uncovered(requests, kept))


def _without_lease(state: PartitionState, lease_id: UUID) -> PartitionState:
    left = tuple(lease for lease in state.read_leases if lease.lease_id != lease_id)
    return replace(state, read_leases=left)


def _without_anomaly(state: PartitionState, anomaly_id: UUID) -> PartitionState:
    known = state.anomalies
    index = _anomaly_index(known, anomaly_id)
    if index == len(known) or known[index].id != anomaly_id:
        return state
    return replace(state, anomalies=(*known[:index], *known[index + 1 :]))


def forget_claim(state: FoldState, key: RecordKey) -> Refusal | None:
    """Fold a claim's tombstone; refuse it until the partition's deletion has finished."""
    if state.partition_deletion(key.subject) is not _DELETED:
        return Refusal.CLAIM_REMOVED
    state.put_record_key(key, None)
    return None


def release_read_lease(state: FoldState, key: RecordKey) -> None:
    """Fold a lease's tombstone."""
    state.put_record_key(key, None)
    before = state.partition_state(key.subject)
    state.put_partition(key.subject, _without_lease(before, UUID(bytes=key.event_id)))


def clear_anomaly(state: FoldState, key: RecordKey) -> None:
    """Fold an anomaly's tombstone."""
    state.put_record_key(key, None)
    before = state.partition_state(key.subject)
    state.put_partition(key.subject, _without_anomaly(before, UUID(bytes=key.event_id)))
