"""The rules: what one record does to what is known. Pure and total.

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

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, Protocol

from rlmm.events import (
    LeadershipClaimed,
    LocalLogTrimmed,
    LogStartAdvanced,
    LogStartRequested,
    ProcessRegistered,
    SegmentDeadLettered,
    TopicPolicyChanged,
)
from rlmm.record_keys import (
    PARTITION_SUBJECT_BYTES,
    RecordKey,
    RecordKind,
    partition_subject,
    segment_subject,
)
from rlmm.segment_entry import SegmentEntry, with_record
from rlmm.spi import MetadataPosition, PartitionState, Registration
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


class PutSegment(NamedTuple):
    """A segment is now this; None: nothing is left of it."""

    subject: bytes
    entry: SegmentEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutPartition:
    """A partition is now this."""

    subject: bytes
    state: PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class PutRecordKey:
    """The key of a trim, log start or request stands in the log at `offset`; None: no longer."""

    key: RecordKey
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutPolicy:
    """A topic id's policy is now this; None: removed."""

    topic_id: bytes
    event: TopicPolicyChanged | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutRegistration:
    """A process is now registered like this; None: removed."""

    process_id: bytes
    registration: Registration | None


Write = PutSegment | PutPartition | PutRecordKey | PutPolicy | PutRegistration


class Outcome(NamedTuple):
    """What a record did: `refusal` is None if it was accepted; `writes` hold either way."""

    writes: tuple[Write, ...] = ()
    refusal: Refusal | None = None


class FoldView(Protocol):
    """What is known so far. Subjects as in rlmm/record_keys.py."""

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        """One segment, None if no record of it is known."""

    def partition_state(self, subject: bytes) -> PartitionState:
        """One partition, empty if nothing is known."""


def fold(view: FoldView, step: Step, *, append_time_ms: int, position: MetadataPosition) -> Outcome:
    """Say what a record does, given what all records before it in its partition did.

    `append_time_ms` is the broker's time of the record (LogAppendTime). Raises nothing.
    """
    if isinstance(step, SegmentStep):
        return _fold_segment(view, step, append_time_ms, position)
    match step:
        case LeadershipClaimed():
            return _fold_claim(view, step)
        case LocalLogTrimmed() | LogStartAdvanced():
            return _fold_fenced(view, step, position.offset)
        case LogStartRequested():
            return _fold_log_start_request(view, step, position.offset)
        case SegmentDeadLettered():
            return _fold_dead_lettered(view, step)
        case TopicPolicyChanged():
            return Outcome(writes=(PutPolicy(topic_id=step.policy.topic_id.bytes, event=step),))
        case ProcessRegistered():
            registration = Registration(process=step, heartbeat_ms=append_time_ms)
            put = PutRegistration(process_id=step.process_id.bytes, registration=registration)
            return Outcome(writes=(put,))
        case Tombstone():
            return _fold_tombstone(view, step.key)


def _fold_segment(
    view: FoldView, step: SegmentStep, append_time_ms: int, position: MetadataPosition
) -> Outcome:
    before = view.segment_entry(step.subject)
    refusal = _segment_refusal(view, step, before, append_time_ms)
    if refusal:
        return _refused(step.subject, before, step.event_id, refusal)
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
        metadata_partition=position.partition,
        metadata_offset=position.offset,
        epochs=step.epochs,
        value=step.value,
    )
    return Outcome(writes=(PutSegment(subject=step.subject, entry=entry),))


def _segment_refusal(
    view: FoldView, step: SegmentStep, before: SegmentEntry | None, append_time_ms: int
) -> Refusal | None:
    current = before.state if before else None
    state = step.state
    if state is DELETE_STARTED and not _owns(view, step.subject, step.writer):
        return Refusal.NOT_OWNER
    if not _may_follow(current, state):
        if current is None:
            return Refusal.UNKNOWN_SEGMENT
        return Refusal.STEP_BACK if current.value >= state.value else Refusal.SKIPPED_STATE
    if state is DELETE_STARTED and step.expected_state is not current:
        return Refusal.UNEXPECTED_STATE
    if state is FINISHED:
        # The event names its own deadline, so a fold that no longer has STARTED refuses it too.
        started_deadline_ms = before.copy_deadline_ms if before else 0
        for deadline_ms in (step.copy_deadline_ms, started_deadline_ms):
            if deadline_ms and append_time_ms > deadline_ms:
                return Refusal.TOO_LATE
    return None


def _may_follow(current: SegmentState | None, state: SegmentState) -> bool:
    if state is STARTED:
        return current is None
    if state is FINISHED:
        return current is None or current is STARTED
    if state is DELETE_STARTED:
        return current is STARTED or current is FINISHED
    return current is DELETE_STARTED


def _refused(
    subject: bytes, before: SegmentEntry | None, event_id: bytes, refusal: Refusal
) -> Outcome:
    records = with_record(before, event_id, accepted=False)
    entry = before._replace(records=records) if before else SegmentEntry(records=records)
    return Outcome(writes=(PutSegment(subject=subject, entry=entry),), refusal=refusal)


def _fold_dead_lettered(view: FoldView, step: SegmentDeadLettered) -> Outcome:
    subject = segment_subject(step.segment_id)
    before = view.segment_entry(subject)
    event_id = step.event_id.bytes
    if before is None or before.state is None:
        return _refused(subject, before, event_id, Refusal.UNKNOWN_SEGMENT)
    if before.state is not DELETE_STARTED:
        return _refused(subject, before, event_id, Refusal.UNEXPECTED_STATE)
    records = with_record(before, event_id, accepted=True)
    entry = before._replace(records=records, dead_lettered=True)
    return Outcome(writes=(PutSegment(subject=subject, entry=entry),))


def _fold_claim(view: FoldView, step: LeadershipClaimed) -> Outcome:
    subject = partition_subject(step.topic_id_partition)
    before = view.partition_state(subject)
    if before.owner and step.writer.leader_epoch < before.owner.leader_epoch:
        return Outcome(refusal=Refusal.STALE_EPOCH)
    state = replace(before, owner=step.writer, lineage=step.lineage)
    return Outcome(writes=(PutPartition(subject=subject, state=state),))


def _fold_fenced(view: FoldView, step: LocalLogTrimmed | LogStartAdvanced, offset: int) -> Outcome:
    """Trims and log starts: both are maxima, and both keys are remembered, accepted or not."""
    subject = partition_subject(step.topic_id_partition)
    before = view.partition_state(subject)
    if isinstance(step, LocalLogTrimmed):
        kind, current = RecordKind.TRIM, before.trimmed_offset
        after = replace(before, trimmed_offset=step.offset, lineage=step.lineage)
    else:
        kind, current = RecordKind.LOG_START, before.log_start_offset
        after = _without_met_request(replace(before, log_start_offset=step.offset))
    key = RecordKey(kind=kind, subject=subject, event_id=step.event_id.bytes)
    remembered = PutRecordKey(key=key, offset=offset)
    if before.owner != step.writer:
        return Outcome(writes=(remembered,), refusal=Refusal.NOT_OWNER)
    if current is not None and step.offset < current:
        return Outcome(writes=(remembered,), refusal=Refusal.BELOW_CURRENT)
    return Outcome(writes=(PutPartition(subject=subject, state=after), remembered))


def _fold_log_start_request(view: FoldView, step: LogStartRequested, offset: int) -> Outcome:
    subject = partition_subject(step.topic_id_partition)
    before = view.partition_state(subject)
    kind = RecordKind.LOG_START_REQUEST
    key = RecordKey(kind=kind, subject=subject, event_id=step.event_id.bytes)
    remembered = PutRecordKey(key=key, offset=offset)
    known = (before.log_start_offset, before.log_start_requested_offset)
    if any(current is not None and step.offset <= current for current in known):
        return Outcome(writes=(remembered,), refusal=Refusal.BELOW_CURRENT)
    after = replace(before, log_start_requested_offset=step.offset)
    return Outcome(writes=(PutPartition(subject=subject, state=after), remembered))


def _without_met_request(state: PartitionState) -> PartitionState:
    requested, start = state.log_start_requested_offset, state.log_start_offset
    if requested is None or start is None or requested > start:
        return state
    return replace(state, log_start_requested_offset=None)


def _fold_tombstone(view: FoldView, key: RecordKey) -> Outcome:
    match key.kind:
        case RecordKind.SEGMENT:
            return _erase_segment(view, key)
        case RecordKind.TRIM | RecordKind.LOG_START | RecordKind.LOG_START_REQUEST:
            return Outcome(writes=(PutRecordKey(key=key, offset=None),))
        case RecordKind.CLAIM:
            return Outcome(refusal=Refusal.CLAIM_REMOVED)
        case RecordKind.POLICY:
            return Outcome(writes=(PutPolicy(topic_id=key.subject, event=None),))
        case RecordKind.REGISTRATION:
            return Outcome(writes=(PutRegistration(process_id=key.subject, registration=None),))


def _erase_segment(view: FoldView, key: RecordKey) -> Outcome:
    before = view.segment_entry(key.subject)
    if before is None:
        return Outcome()
    # The keys of the records that are left are remembered: their tombstones may still follow.
    records = before.without_record(key.event_id)
    entry = SegmentEntry(records=records) if records else None
    return Outcome(writes=(PutSegment(subject=key.subject, entry=entry),))


def _owns(view: FoldView, subject: bytes, writer: Writer | None) -> bool:
    return view.partition_state(subject[:PARTITION_SUBJECT_BYTES]).owner == writer
