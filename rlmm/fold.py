"""The rules: what one record does to what is known. Total, and pure but for the state it is given.

Every process that folds the same log holds the same state, and a fold of the compacted log equals
the live one: acceptance depends only on claims, which are never removed, and on the segment's own
records, which are removed together. A refused record changes nothing but that its key is
remembered, so that its owner can remove it one day.

| record | accepted |
|---|---|
| claim | unless its epoch is older than the owner's; the last of the highest epoch owns |
| COPY_SEGMENT_STARTED | from nothing |
| COPY_SEGMENT_FINISHED | from nothing or STARTED, not later than the copy's deadline |
| DELETE_SEGMENT_STARTED | by the owner, from STARTED or FINISHED, if that is what it expects |
| DELETE_SEGMENT_FINISHED | from DELETE_SEGMENT_STARTED, by anyone |
| dead-lettered | in DELETE_SEGMENT_STARTED, by anyone |
| trim, log start | by the owner, unless below what was accepted before |
| log start requested | by anyone, if above the log start and what was requested before |
| policy, registration | always: the last writer wins |

A tombstone of any record of a segment erases the segment wholly, for compaction may have taken its
other records already. A tombstone of a trim or log start only forgets the key; so does one of a
request, which is written when the log starts there: a request that is met is no longer known.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Protocol

from rlmm.events import (
    LeadershipClaimed,
    LocalLogTrimmed,
    LogStartAdvanced,
    LogStartRequested,
    ProcessRegistered,
    SegmentDeadLettered,
    TopicPolicyChanged,
)
from rlmm.positions import TopicRecord
from rlmm.record_keys import (
    PARTITION_SUBJECT_BYTES,
    RecordKey,
    RecordKind,
    partition_subject,
    segment_subject,
)
from rlmm.segment_entry import SegmentEntry, with_record
from rlmm.spi import PartitionState, Registration
from rlmm.steps import SegmentStep, Step, Tombstone
from rsm.segment.metadata import SegmentState, Writer

STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED
DELETE_FINISHED = SegmentState.DELETE_SEGMENT_FINISHED


class Refusal(Enum):
    """Why a record was refused; the value is its name in metrics and logs."""

    STALE_EPOCH = "stale_epoch"
    NOT_OWNER = "not_owner"
    UNKNOWN_SEGMENT = "unknown_segment"
    STEP_BACK = "step_back"
    SKIPPED_STATE = "skipped_state"
    UNEXPECTED_STATE = "unexpected_state"
    TOO_LATE = "too_late"
    BELOW_CURRENT = "below_current"
    CLAIM_REMOVED = "claim_removed"


class FoldState(Protocol):
    """What is known so far, and takes what a record changes. Subjects as in rlmm/record_keys.py."""

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        """One segment, None if no record of it is known."""

    def put_segment(self, subject: bytes, entry: SegmentEntry | None) -> None:
        """A segment is now this; None: nothing is left of it."""

    def partition_state(self, subject: bytes) -> PartitionState:
        """One partition, empty if nothing is known."""

    def put_partition(self, subject: bytes, state: PartitionState) -> None:
        """A partition is now this."""

    def put_record_key(self, key: RecordKey, offset: int | None) -> None:
        """A trim's, log start's or request's record stands at `offset`; None: no longer."""

    def put_policy(self, topic_id: bytes, event: TopicPolicyChanged | None) -> None:
        """A topic id's policy is now this; None: removed."""

    def put_registration(self, process_id: bytes, registration: Registration | None) -> None:
        """A process is now registered like this; None: removed."""


def fold(state: FoldState, step: Step, record: TopicRecord) -> Refusal | None:
    """Do what a record does, given what all records before it in its partition did.

    `step` is what `record` says. Returns why it is refused, None if it is not. Raises nothing but
    what `state` raises.
    """
    if isinstance(step, SegmentStep):
        return _fold_segment(state, step, record)
    match step:
        case LeadershipClaimed():
            return _fold_claim(state, step)
        case LocalLogTrimmed() | LogStartAdvanced():
            return _fold_fenced(state, step, record.offset)
        case LogStartRequested():
            return _fold_log_start_request(state, step, record.offset)
        case SegmentDeadLettered():
            return _fold_dead_lettered(state, step)
        case TopicPolicyChanged():
            state.put_policy(step.policy.topic_id.bytes, step)
            return None
        case ProcessRegistered():
            registration = Registration(process=step, heartbeat_ms=record.append_time_ms)
            state.put_registration(step.process_id.bytes, registration)
            return None
        case Tombstone():
            return _fold_tombstone(state, step.key)


def _fold_segment(state: FoldState, step: SegmentStep, record: TopicRecord) -> Refusal | None:
    subject, append_time_ms = step.subject, record.append_time_ms
    before = state.segment_entry(subject)
    refusal = _segment_refusal(state, step, before, append_time_ms)
    if refusal:
        _note_refused(state, subject, before, step.event_id)
        return refusal
    deadline_ms = step.copy_deadline_ms
    if step.state is STARTED and step.copy_timeout_ms:
        deadline_ms = append_time_ms + step.copy_timeout_ms
    if before and before.copy_deadline_ms > deadline_ms:
        deadline_ms = before.copy_deadline_ms
    entry = SegmentEntry(
        records=with_record(before, step.event_id, accepted=True),
        state=step.state,
        dead_lettered=before.dead_lettered if before else False,
        base_offset=step.base_offset,
        end_offset=step.end_offset,
        changed_ms=append_time_ms,
        copy_deadline_ms=deadline_ms,
        metadata_partition=record.partition,
        metadata_offset=record.offset,
        epochs=step.epochs,
        value=step.value,
    )
    state.put_segment(subject, entry)
    return None


def _segment_refusal(
    state: FoldState, step: SegmentStep, before: SegmentEntry | None, append_time_ms: int
) -> Refusal | None:
    current = before.state if before else None
    wanted = step.state
    if wanted is DELETE_STARTED and not _owns(state, step.subject, step.writer):
        return Refusal.NOT_OWNER
    if not _may_follow(current, wanted):
        if current is None:
            return Refusal.UNKNOWN_SEGMENT
        return Refusal.STEP_BACK if current.value >= wanted.value else Refusal.SKIPPED_STATE
    if wanted is DELETE_STARTED and step.expected_state is not current:
        return Refusal.UNEXPECTED_STATE
    if wanted is FINISHED:
        # The event names its own deadline, so a fold that no longer has STARTED refuses it too.
        started_deadline_ms = before.copy_deadline_ms if before else 0
        for deadline_ms in (step.copy_deadline_ms, started_deadline_ms):
            if deadline_ms and append_time_ms > deadline_ms:
                return Refusal.TOO_LATE
    return None


def _may_follow(current: SegmentState | None, wanted: SegmentState) -> bool:
    if wanted is STARTED:
        return current is None
    if wanted is FINISHED:
        return current is None or current is STARTED
    if wanted is DELETE_STARTED:
        return current is STARTED or current is FINISHED
    return current is DELETE_STARTED


def _note_refused(
    state: FoldState, subject: bytes, before: SegmentEntry | None, event_id: bytes
) -> None:
    records = with_record(before, event_id, accepted=False)
    entry = before._replace(records=records) if before else SegmentEntry(records=records)
    state.put_segment(subject, entry)


def _fold_dead_lettered(state: FoldState, step: SegmentDeadLettered) -> Refusal | None:
    subject, event_id = segment_subject(step.segment_id), step.event_id.bytes
    before = state.segment_entry(subject)
    if before is None or before.state is not DELETE_STARTED:
        _note_refused(state, subject, before, event_id)
        unknown = before is None or before.state is None
        return Refusal.UNKNOWN_SEGMENT if unknown else Refusal.UNEXPECTED_STATE
    records = with_record(before, event_id, accepted=True)
    state.put_segment(subject, before._replace(records=records, dead_lettered=True))
    return None


def _fold_claim(state: FoldState, step: LeadershipClaimed) -> Refusal | None:
    subject = partition_subject(step.topic_id_partition)
    before = state.partition_state(subject)
    if before.owner and step.writer.leader_epoch < before.owner.leader_epoch:
        return Refusal.STALE_EPOCH
    state.put_partition(subject, replace(before, owner=step.writer, lineage=step.lineage))
    return None


def _fold_fenced(
    state: FoldState, step: LocalLogTrimmed | LogStartAdvanced, offset: int
) -> Refusal | None:
    """Trims and log starts: both are maxima, and both keys are remembered, accepted or not."""
    subject = partition_subject(step.topic_id_partition)
    before = state.partition_state(subject)
    if isinstance(step, LocalLogTrimmed):
        kind, current = RecordKind.TRIM, before.trimmed_offset
        after = replace(before, trimmed_offset=step.offset, lineage=step.lineage)
    else:
        kind, current = RecordKind.LOG_START, before.log_start_offset
        after = _without_met_request(replace(before, log_start_offset=step.offset))
    key = RecordKey(kind=kind, subject=subject, event_id=step.event_id.bytes)
    state.put_record_key(key, offset)
    if before.owner != step.writer:
        return Refusal.NOT_OWNER
    if current is not None and step.offset < current:
        return Refusal.BELOW_CURRENT
    state.put_partition(subject, after)
    return None


def _fold_log_start_request(
    state: FoldState, step: LogStartRequested, offset: int
) -> Refusal | None:
    subject = partition_subject(step.topic_id_partition)
    before = state.partition_state(subject)
    kind = RecordKind.LOG_START_REQUEST
    key = RecordKey(kind=kind, subject=subject, event_id=step.event_id.bytes)
    state.put_record_key(key, offset)
    known = (before.log_start_offset, before.log_start_requested_offset)
    if any(current is not None and step.offset <= current for current in known):
        return Refusal.BELOW_CURRENT
    state.put_partition(subject, replace(before, log_start_requested_offset=step.offset))
    return None


def _without_met_request(state: PartitionState) -> PartitionState:
    requested, start = state.log_start_requested_offset, state.log_start_offset
    if requested is None or start is None or requested > start:
        return state
    return replace(state, log_start_requested_offset=None)


def _fold_tombstone(state: FoldState, key: RecordKey) -> Refusal | None:
    match key.kind:
        case RecordKind.SEGMENT:
            _erase_segment(state, key)
        case RecordKind.TRIM | RecordKind.LOG_START | RecordKind.LOG_START_REQUEST:
            state.put_record_key(key, None)
        case RecordKind.CLAIM:
            return Refusal.CLAIM_REMOVED
        case RecordKind.POLICY:
            state.put_policy(key.subject, None)
        case RecordKind.REGISTRATION:
            state.put_registration(key.subject, None)
    return None


def _erase_segment(state: FoldState, key: RecordKey) -> None:
    before = state.segment_entry(key.subject)
    if before is None:
        return
    # The keys of the records that are left are remembered: their tombstones may still follow.
    records = before.without_record(key.event_id)
    state.put_segment(key.subject, SegmentEntry(records=records) if records else None)


def _owns(state: FoldState, subject: bytes, writer: Writer | None) -> bool:
    return state.partition_state(subject[:PARTITION_SUBJECT_BYTES]).owner == writer
