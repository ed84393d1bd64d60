"""The rules: what one record does to what is known. Total, and pure but for the state it is given.

Every process that folds the same log holds the same state, and a fold of the compacted log equals
the live one: acceptance depends only on claims and on the partition's deletion, which are not
removed, and on the segment's own records, which are removed together. A refused record changes
nothing but that its key is remembered, so that its owner can remove it one day.

| record | accepted |
|---|---|
| claim | unless its epoch is older than the owner's; the last of the highest epoch owns |
| COPY_SEGMENT_STARTED | from nothing |
| COPY_SEGMENT_FINISHED | from nothing or STARTED, not later than the copy's deadline |
| DELETE_SEGMENT_STARTED | by the owner, from STARTED or FINISHED, if that is what it expects |
| DELETE_SEGMENT_FINISHED | from DELETE_SEGMENT_STARTED, by anyone |
| dead-lettered | in DELETE_SEGMENT_STARTED, by anyone |
| trim | by the owner, unless one that was accepted before covers it |
| log start | by the owner, unless one that was accepted before covers it |
| loss accepted | by anyone, if above what was accepted before; both are maxima |
| log start requested | by anyone, unless a log start or request that is known covers it |
| gaps | by the owner; the last ones hold |
| offload requested | by anyone, if above what was requested before |
| partition delete | by anyone, MARKED, then STARTED, then FINISHED |
| read lease, anomaly, policy, pause, registration, cluster secret | always: last writer wins |

A log start, a request of one, a trim and gaps are of the epoch in which they were decided. In a
lineage in which a later one begins below they reach up to there: an unclean election has cut off
what they were decided of, and what is written there since is new. A log start covers another if it
reaches as far and is of no earlier epoch: then the other can be forgotten (rlmm/log_starts.py).

Once a partition's deletion is marked no copy begins there, and when it has finished nothing but
that is known of the partition and all else about it is refused, for ever: those records stay.

A tombstone of any record of a segment erases the segment wholly, for compaction may have taken its
other records already. A tombstone of a trim, log start or gaps only forgets the key; so does one of
a request, which is written when the log starts there: a request that is met is no longer known.
Claims may be removed when their partition's deletion has finished, for then they decide nothing.

A record that needs newer rules than these changes nothing but that its key is remembered until it
is removed or replaced. A cache of another version of the rules is folded again.
"""

from __future__ import annotations

from rlmm.events.anomaly import AnomalyReported
from rlmm.events.processes import ProcessRegistered
from rlmm.events.secrets import ClusterSecret, ClusterSecretSet
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
    SegmentDeadLettered,
    TopicPaused,
    TopicPolicyChanged,
)
from rlmm.fold.partition_fold import (
    clear_anomaly,
    fold_anomaly,
    fold_claim,
    fold_gaps,
    fold_log_start,
    fold_log_start_request,
    fold_loss_accepted,
    fold_offload_request,
    fold_partition_delete,
    fold_read_lease,
    fold_trim,
    forget_claim,
    release_read_lease,
)
from rlmm.fold.segment_fold import erase_segment, fold_dead_lettered, fold_segment
from rlmm.fold.state import FoldState, Refusal
from rlmm.fold.steps import SegmentStep, Step, Tombstone
from rlmm.positions import TopicRecord
from rlmm.record_keys import RecordKey, RecordKind
from rlmm.spi import MetadataPosition, NewerRecord, Registration


def fold(  # noqa: C901, PLR0911, PLR0912 - one case for each step
    state: FoldState, step: Step, record: TopicRecord
) -> Refusal | None:
    """Do what a record does, given what all records before it in its partition did.

    `step` is what `record` says. Returns why it is refused, None if it is not. Raises nothing but
    what `state` raises.
    """
    if isinstance(step, SegmentStep):
        return fold_segment(state, step, record)
    match step:
        case LeadershipClaimed():
            return fold_claim(state, step, record.offset)
        case LocalLogTrimmed():
            return fold_trim(state, step, record.offset)
        case LogStartAdvanced():
            return fold_log_start(state, step, record.offset)
        case LogStartRequested():
            return fold_log_start_request(state, step, record.offset)
        case GapsRecorded():
            return fold_gaps(state, step, record.offset)
        case LossAccepted():
            return fold_loss_accepted(state, step, record.offset)
        case OffloadRequested():
            return fold_offload_request(state, step, record.offset)
        case RemotePartitionDeleteMetadata():
            return fold_partition_delete(state, step)
        case ReadLeaseTaken():
            state.put_unread_record(record.key, None)
            return fold_read_lease(state, step, record)
        case AnomalyReported():
            state.put_unread_record(record.key, None)
            return fold_anomaly(state, step, record.offset)
        case SegmentDeadLettered():
            return fold_dead_lettered(state, step)
        case TopicPolicyChanged():
            state.put_unread_record(record.key, None)
            state.put_policy(step.policy.topic_id.bytes, step, record.offset)
            return None
        case TopicPaused():
            state.put_unread_record(record.key, None)
            state.put_pause(step.topic_id.bytes, step)
            return None
        case ProcessRegistered():
            state.put_unread_record(record.key, None)
            registration = Registration(process=step, heartbeat_ms=record.append_time_ms)
            state.put_registration(step.process_id.bytes, registration)
            return None
        case ClusterSecretSet():
            state.put_unread_record(record.key, None)
            secret = ClusterSecret(
                current=step.current, previous=step.previous, set_ms=record.append_time_ms
            )
            state.put_cluster_secret(secret)
            return None
        case Tombstone():
            state.put_unread_record(record.key, None)
            return _fold_tombstone(state, step.key, record.offset)


def note_unread(state: FoldState, record: TopicRecord, needs_fold_version: int) -> None:
    """Remember a record that cannot be folded; `needs_fold_version` 0: by newer rules neither.

    A tombstone, of whatever it is, leaves nothing that could be read.
    """
    position = MetadataPosition(partition=record.partition, offset=record.offset)
    unread = NewerRecord(needs_fold_version=needs_fold_version, position=position)
    state.put_unread_record(record.key, None if record.value is None else unread)


def _fold_tombstone(  # noqa: C901 - one case for each kind
    state: FoldState, key: RecordKey, offset: int
) -> Refusal | None:
    match key.kind:
        case RecordKind.SEGMENT:
            erase_segment(state, key)
        case (
            RecordKind.TRIM
            | RecordKind.LOG_START
            | RecordKind.LOG_START_REQUEST
            | RecordKind.GAPS
            | RecordKind.OFFLOAD_REQUEST
            | RecordKind.LOSS_ACCEPTED
        ):
            state.put_record_key(key, None)
        case RecordKind.CLAIM:
            return forget_claim(state, key)
        case RecordKind.PARTITION_DELETE:
            return Refusal.PARTITION_DELETE_REMOVED
        case RecordKind.READ_LEASE:
            release_read_lease(state, key)
        case RecordKind.ANOMALY:
            clear_anomaly(state, key)
        case RecordKind.POLICY:
            state.put_policy(key.subject, None, offset)
        case RecordKind.PAUSE:
            state.put_pause(key.subject, None)
        case RecordKind.REGISTRATION:
            state.put_registration(key.subject, None)
        case RecordKind.CLUSTER_SECRET:
            state.put_cluster_secret(None)
    return None
