"""Encodes and decodes events as protobuf messages (rlmm/proto/events.proto). Pure.

Missing or contradictory fields raise CorruptError. An enum value that only a newer version knows
raises UnsupportedError; it is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from rlmm.events.anomaly import AnomalyReported
from rlmm.events.anomaly_messages import reported_from_message, reported_to_message
from rlmm.events.gap_messages import (
    gaps_from_message,
    gaps_to_message,
    loss_from_message,
    loss_to_message,
    offload_from_message,
    offload_to_message,
)
from rlmm.events.policy_messages import (
    pause_from_message,
    pause_to_message,
    policy_from_message,
    policy_to_message,
)
from rlmm.events.process_messages import registration_from_message, registration_to_message
from rlmm.events.processes import ProcessRegistered
from rlmm.events.secret_messages import secret_from_message, secret_to_message
from rlmm.events.secrets import ClusterSecretSet
from rlmm.events.values import (
    Event,
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
    SegmentDeadLettered,
    SegmentEvent,
    TopicPaused,
    TopicPolicyChanged,
)
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata_codec import (
    enum_from_number,
    id_from_bytes,
    lineage_from_messages,
    lineage_to_messages,
    metadata_from_message,
    metadata_to_message,
    partition_from_message,
    partition_to_message,
    state_from_number,
    writer_from_message,
    writer_to_message,
)
from rsm.segment.ranges import OffsetRange

DEAD_LETTERED_FIELD = "segment_dead_lettered"


_FIRST_FOLD_VERSION = 1
_FOLD_VERSIONS: Mapping[type[Event], int] = {
    GapsRecorded: 2,
    LossAccepted: 2,
    OffloadRequested: 2,
    TopicPaused: 2,
}


def event_to_message(  # noqa: C901, PLR0912 - one case for each event
    event: Event,
) -> pb.MetadataEvent:
    """Encode an event as a record's value."""
    version = _FOLD_VERSIONS.get(type(event), _FIRST_FOLD_VERSION)
    message = pb.MetadataEvent(min_fold_version=version, event_id=event.event_id.bytes)
    match event:
        case SegmentEvent():
            message.segment.CopyFrom(_segment_to_message(event))
        case SegmentDeadLettered():
            message.segment_dead_lettered.CopyFrom(_dead_lettered_to_message(event))
        case LeadershipClaimed():
            message.leadership_claimed.CopyFrom(_claim_to_message(event))
        case LocalLogTrimmed():
            message.local_log_trimmed.CopyFrom(_trim_to_message(event))
        case LogStartAdvanced():
            message.log_start_advanced.CopyFrom(_log_start_to_message(event))
        case LogStartRequested():
            message.log_start_requested.CopyFrom(_log_start_request_to_message(event))
        case RemotePartitionDeleteMetadata():
            message.partition_delete.CopyFrom(_partition_delete_to_message(event))
        case ReadLeaseTaken():
            message.read_lease_taken.CopyFrom(_read_lease_to_message(event))
        case GapsRecorded():
            message.gaps_recorded.CopyFrom(gaps_to_message(event))
        case OffloadRequested():
            message.offload_requested.CopyFrom(offload_to_message(event))
        case LossAccepted():
            message.loss_accepted.CopyFrom(loss_to_message(event))
        case AnomalyReported():
            message.anomaly_reported.CopyFrom(reported_to_message(event))
        case TopicPaused():
            message.topic_paused.CopyFrom(pause_to_message(event))
        case TopicPolicyChanged():
            message.topic_policy_changed.CopyFrom(policy_to_message(event.policy))
        case ProcessRegistered():
            message.process_registered.CopyFrom(registration_to_message(event))
        case ClusterSecretSet():
            message.cluster_secret_set.CopyFrom(secret_to_message(event))
    return message


def event_from_message(  # noqa: C901, PLR0911, PLR0912 - one case for each kind
    kind: RecordKind, message: pb.MetadataEvent
) -> Event:
    """Decode an event whose envelope was checked. CorruptError, UnsupportedError."""
    event_id = id_from_bytes(message.event_id)
    match kind:
        case RecordKind.SEGMENT if message.HasField(DEAD_LETTERED_FIELD):
            return _dead_lettered_from_message(event_id, message.segment_dead_lettered)
        case RecordKind.SEGMENT:
            return _segment_from_message(event_id, message.segment)
        case RecordKind.CLAIM:
            return _claim_from_message(event_id, message.leadership_claimed)
        case RecordKind.TRIM:
            return _trim_from_message(event_id, message.local_log_trimmed)
        case RecordKind.LOG_START:
            return _log_start_from_message(event_id, message.log_start_advanced)
        case RecordKind.LOG_START_REQUEST:
            return _log_start_request_from_message(event_id, message.log_start_requested)
        case RecordKind.PARTITION_DELETE:
            return _partition_delete_from_message(event_id, message.partition_delete)
        case RecordKind.READ_LEASE:
            return _read_lease_from_message(event_id, message.read_lease_taken)
        case RecordKind.GAPS:
            return gaps_from_message(event_id, message.gaps_recorded)
        case RecordKind.OFFLOAD_REQUEST:
            return offload_from_message(event_id, message.offload_requested)
        case RecordKind.LOSS_ACCEPTED:
            return loss_from_message(event_id, message.loss_accepted)
        case RecordKind.ANOMALY:
            return reported_from_message(event_id, message.anomaly_reported)
        case RecordKind.PAUSE:
            return pause_from_message(event_id, message.topic_paused)
        case RecordKind.POLICY:
            policy = policy_from_message(message.topic_policy_changed)
            return TopicPolicyChanged(event_id=event_id, policy=policy)
        case RecordKind.REGISTRATION:
            return registration_from_message(event_id, message.process_registered)
        case RecordKind.CLUSTER_SECRET:
            return secret_from_message(event_id, message.cluster_secret_set)


def _segment_to_message(event: SegmentEvent) -> pb.SegmentEvent:
    expected = event.expected_state
    return pb.SegmentEvent(
        metadata=metadata_to_message(event.metadata),
        expected_state=None if expected is None else expected.name,
        copy_timeout_ms=event.copy_timeout_ms,
        copy_deadline_ms=event.copy_deadline_ms,
    )


def _segment_from_message(event_id: UUID, message: pb.SegmentEvent) -> SegmentEvent:
    if message.copy_timeout_ms < 0 or message.copy_deadline_ms < 0:
        raise CorruptError("a negative time of a copy")
    expected = message.expected_state
    return SegmentEvent(
        event_id=event_id,
        metadata=metadata_from_message(message.metadata),
        expected_state=state_from_number(expected) if expected else None,
        copy_timeout_ms=message.copy_timeout_ms,
        copy_deadline_ms=message.copy_deadline_ms,
    )


def _dead_lettered_to_message(event: SegmentDeadLettered) -> pb.SegmentDeadLettered:
    return pb.SegmentDeadLettered(
        topic_id_partition=partition_to_message(event.segment_id.topic_id_partition),
        id=event.segment_id.id.bytes,
        attempts=event.attempts,
    )


def _dead_lettered_from_message(
    event_id: UUID, message: pb.SegmentDeadLettered
) -> SegmentDeadLettered:
    return SegmentDeadLettered(
        event_id=event_id,
        segment_id=RemoteLogSegmentId(
            topic_id_partition=partition_from_message(message.topic_id_partition),
            id=id_from_bytes(message.id),
        ),
        attempts=message.attempts,
    )


def _claim_to_message(event: LeadershipClaimed) -> pb.LeadershipClaimed:
    return pb.LeadershipClaimed(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        writer=writer_to_message(event.writer),
        lineage=lineage_to_messages(event.lineage),
    )


def _claim_from_message(event_id: UUID, message: pb.LeadershipClaimed) -> LeadershipClaimed:
    return LeadershipClaimed(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        writer=writer_from_message(message.writer),
        lineage=lineage_from_messages(list(message.lineage)),
    )


def _trim_to_message(event: LocalLogTrimmed) -> pb.LocalLogTrimmed:
    return pb.LocalLogTrimmed(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        writer=writer_to_message(event.writer),
        offset=event.offset,
        lineage=lineage_to_messages(event.lineage),
    )


def _trim_from_message(event_id: UUID, message: pb.LocalLogTrimmed) -> LocalLogTrimmed:
    return LocalLogTrimmed(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        writer=writer_from_message(message.writer),
        offset=_checked_offset(message.offset),
        lineage=lineage_from_messages(list(message.lineage)),
    )


def _log_start_to_message(event: LogStartAdvanced) -> pb.LogStartAdvanced:
    return pb.LogStartAdvanced(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        writer=writer_to_message(event.writer),
        offset=event.offset,
        reason=event.reason,
    )


def _log_start_from_message(event_id: UUID, message: pb.LogStartAdvanced) -> LogStartAdvanced:
    return LogStartAdvanced(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        writer=writer_from_message(message.writer),
        offset=_checked_offset(message.offset),
        reason=message.reason,
    )


def _log_start_request_to_message(event: LogStartRequested) -> pb.LogStartRequested:
    return pb.LogStartRequested(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        offset=event.offset,
        leader_epoch=None if event.leader_epoch < 0 else event.leader_epoch,
    )


def _log_start_request_from_message(
    event_id: UUID, message: pb.LogStartRequested
) -> LogStartRequested:
    return LogStartRequested(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        offset=_checked_offset(message.offset),
        leader_epoch=max(message.leader_epoch, -1) if message.HasField("leader_epoch") else -1,
    )


def _partition_delete_to_message(
    event: RemotePartitionDeleteMetadata,
) -> pb.RemotePartitionDeleteMetadata:
    return pb.RemotePartitionDeleteMetadata(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        state=event.state.name,
        event_timestamp_ms=event.event_timestamp_ms,
        broker_id=event.broker_id,
    )


def _partition_delete_from_message(
    event_id: UUID, message: pb.RemotePartitionDeleteMetadata
) -> RemotePartitionDeleteMetadata:
    state = enum_from_number(RemotePartitionDeleteState, message.state, "state of a deletion")
    return RemotePartitionDeleteMetadata(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        state=state,
        event_timestamp_ms=message.event_timestamp_ms,
        broker_id=message.broker_id,
    )


def _read_lease_to_message(event: ReadLeaseTaken) -> pb.ReadLeaseTaken:
    return pb.ReadLeaseTaken(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        lease_id=event.lease_id.bytes,
        start_offset=event.offsets.start_offset,
        end_offset=event.offsets.end_offset,
        duration_ms=event.duration_ms,
        holder=event.holder,
    )


def _read_lease_from_message(event_id: UUID, message: pb.ReadLeaseTaken) -> ReadLeaseTaken:
    try:
        return ReadLeaseTaken(
            event_id=event_id,
            lease_id=id_from_bytes(message.lease_id),
            topic_id_partition=partition_from_message(message.topic_id_partition),
            offsets=OffsetRange(start_offset=message.start_offset, end_offset=message.end_offset),
            duration_ms=message.duration_ms,
            holder=message.holder,
        )
    except ValueError as error:
        raise CorruptError("not a read lease", reason=str(error)) from error


def _checked_offset(offset: int) -> int:
    if offset < 0:
        raise CorruptError("a negative offset", offset=offset)
    return offset
