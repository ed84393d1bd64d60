"""The fold rules: how one record changes the known state. Total; pure except for that state.

All processes that fold the same log have the same state. A fold of the compacted log gives the same
state as one of the full log: acceptance depends only on claims, the partition's deletion and the
segment's own records. Claims and deletions stay, and a segment's records are removed together. A
refused record has no effect except that the state keeps its key, so that its owner can remove it.

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
| gaps | by the owner; the last ones win |
| offload requested | by anyone, unless below what was requested before |
| partition delete | by anyone, MARKED, then STARTED, then FINISHED |
| read lease, policy, pause, registration, cluster secret | by anyone; the last one wins |
| anomaly | by anyone, up to a limit per partition; the last one wins |

A log start, a request of one, a trim and gaps belong to the epoch of their decision. In a lineage
with a later epoch that begins below, they reach only to its start: an unclean election cut off the
log that they were decided for. A log start covers another if neither its offset nor its epoch is
lower; then the other can be removed (rlmm/log_starts.py).

Once a partition's deletion is marked, no copy begins there. Once it has finished, the state has
nothing else of the partition, and the fold refuses everything else about it permanently, because
the records of the deletion stay.

A tombstone of any record of a segment erases the whole segment, because compaction may already have
removed the others. A tombstone of a trim, log start or gaps only removes the key. So does that of a
request: it is written once the log starts there, and a request that is met is no longer known.
Claims may be removed once their partition's deletion has finished, because they then have no
effect.

For a record that needs newer rules, the state keeps only its key until the record is removed or
replaced. A cache that was folded by other rules is rebuilt.
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


def fold(  # noqa: C901, PLR0911, PLR0912 - one case for each event
    state: FoldState, step: Step, record: TopicRecord
) -> Refusal | None:
    """Apply a record to the state that all previous records of its partition made.

    `step` is the parsed `record`. Returns the reason for a refusal, None if accepted. Raises only
    the errors of `state`.
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
    """Note a record that cannot be folded; `needs_fold_version` 0: newer rules cannot either.

    A tombstone of any kind leaves nothing to read.
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
