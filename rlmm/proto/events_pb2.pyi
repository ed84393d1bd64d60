from rsm.segment.proto import segment_pb2 as _segment_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RemotePartitionDeleteState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARTITION_DELETE_STATE_UNKNOWN: _ClassVar[RemotePartitionDeleteState]
    DELETE_PARTITION_MARKED: _ClassVar[RemotePartitionDeleteState]
    DELETE_PARTITION_STARTED: _ClassVar[RemotePartitionDeleteState]
    DELETE_PARTITION_FINISHED: _ClassVar[RemotePartitionDeleteState]

class GapReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GAP_REASON_UNKNOWN: _ClassVar[GapReason]
    SHED: _ClassVar[GapReason]
    EXTERNAL_START: _ClassVar[GapReason]

class AnomalyKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANOMALY_KIND_UNKNOWN: _ClassVar[AnomalyKind]
    MISSING: _ClassVar[AnomalyKind]
    CORRUPT: _ClassVar[AnomalyKind]
    LOSS_ACCEPTED: _ClassVar[AnomalyKind]

class OffloadSegmentStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OFFLOAD_SEGMENT_STATUS_UNKNOWN: _ClassVar[OffloadSegmentStatus]
    ASSIGNED: _ClassVar[OffloadSegmentStatus]
    OFFLOADED: _ClassVar[OffloadSegmentStatus]
    FAILED: _ClassVar[OffloadSegmentStatus]

class PausableTask(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PAUSABLE_TASK_UNKNOWN: _ClassVar[PausableTask]
    COPY: _ClassVar[PausableTask]
    TRIM: _ClassVar[PausableTask]
    DELETE: _ClassVar[PausableTask]

class OutagePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTAGE_POLICY_UNKNOWN: _ClassVar[OutagePolicy]
    HOLD: _ClassVar[OutagePolicy]
    SHED_OLDEST: _ClassVar[OutagePolicy]

class PolicyState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLICY_STATE_UNKNOWN: _ClassVar[PolicyState]
    ENABLING: _ClassVar[PolicyState]
    ACTIVE: _ClassVar[PolicyState]
    DISABLING: _ClassVar[PolicyState]
    DISABLED: _ClassVar[PolicyState]

class CopyLagSince(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COPY_LAG_SINCE_UNKNOWN: _ClassVar[CopyLagSince]
    NEWEST_RECORD: _ClassVar[CopyLagSince]
    ROLL: _ClassVar[CopyLagSince]

class OffloadMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OFFLOAD_MODE_UNKNOWN: _ClassVar[OffloadMode]
    SEGMENT: _ClassVar[OffloadMode]
    STREAM: _ClassVar[OffloadMode]

class PolicySetting(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLICY_SETTING_UNKNOWN: _ClassVar[PolicySetting]
    RETENTION_MS: _ClassVar[PolicySetting]
    RETENTION_BYTES: _ClassVar[PolicySetting]
    LOCAL_RETENTION_MS: _ClassVar[PolicySetting]
    LOCAL_RETENTION_BYTES: _ClassVar[PolicySetting]
    COPY_LAG_MS: _ClassVar[PolicySetting]
    COPY_LAG_BYTES: _ClassVar[PolicySetting]
    COPY_LAG_SINCE: _ClassVar[PolicySetting]
    OUTAGE_POLICY: _ClassVar[PolicySetting]
    LOCAL_DELETION_LAG_MS: _ClassVar[PolicySetting]
    OFFLOAD_MODE: _ClassVar[PolicySetting]
    OFFLOAD_SEGMENT_MAX_BYTES: _ClassVar[PolicySetting]
    OFFLOAD_SEGMENT_ROLLOVER_MS: _ClassVar[PolicySetting]
    LAYOUT: _ClassVar[PolicySetting]

class ProcessRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROCESS_ROLE_UNKNOWN: _ClassVar[ProcessRole]
    MANAGER: _ClassVar[ProcessRole]
    GATEWAY: _ClassVar[ProcessRole]

class ProcessReadiness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROCESS_READINESS_UNKNOWN: _ClassVar[ProcessReadiness]
    READY: _ClassVar[ProcessReadiness]
    NOT_READY: _ClassVar[ProcessReadiness]
    STOPPED: _ClassVar[ProcessReadiness]
PARTITION_DELETE_STATE_UNKNOWN: RemotePartitionDeleteState
DELETE_PARTITION_MARKED: RemotePartitionDeleteState
DELETE_PARTITION_STARTED: RemotePartitionDeleteState
DELETE_PARTITION_FINISHED: RemotePartitionDeleteState
GAP_REASON_UNKNOWN: GapReason
SHED: GapReason
EXTERNAL_START: GapReason
ANOMALY_KIND_UNKNOWN: AnomalyKind
MISSING: AnomalyKind
CORRUPT: AnomalyKind
LOSS_ACCEPTED: AnomalyKind
OFFLOAD_SEGMENT_STATUS_UNKNOWN: OffloadSegmentStatus
ASSIGNED: OffloadSegmentStatus
OFFLOADED: OffloadSegmentStatus
FAILED: OffloadSegmentStatus
PAUSABLE_TASK_UNKNOWN: PausableTask
COPY: PausableTask
TRIM: PausableTask
DELETE: PausableTask
OUTAGE_POLICY_UNKNOWN: OutagePolicy
HOLD: OutagePolicy
SHED_OLDEST: OutagePolicy
POLICY_STATE_UNKNOWN: PolicyState
ENABLING: PolicyState
ACTIVE: PolicyState
DISABLING: PolicyState
DISABLED: PolicyState
COPY_LAG_SINCE_UNKNOWN: CopyLagSince
NEWEST_RECORD: CopyLagSince
ROLL: CopyLagSince
OFFLOAD_MODE_UNKNOWN: OffloadMode
SEGMENT: OffloadMode
STREAM: OffloadMode
POLICY_SETTING_UNKNOWN: PolicySetting
RETENTION_MS: PolicySetting
RETENTION_BYTES: PolicySetting
LOCAL_RETENTION_MS: PolicySetting
LOCAL_RETENTION_BYTES: PolicySetting
COPY_LAG_MS: PolicySetting
COPY_LAG_BYTES: PolicySetting
COPY_LAG_SINCE: PolicySetting
OUTAGE_POLICY: PolicySetting
LOCAL_DELETION_LAG_MS: PolicySetting
OFFLOAD_MODE: PolicySetting
OFFLOAD_SEGMENT_MAX_BYTES: PolicySetting
OFFLOAD_SEGMENT_ROLLOVER_MS: PolicySetting
LAYOUT: PolicySetting
PROCESS_ROLE_UNKNOWN: ProcessRole
MANAGER: ProcessRole
GATEWAY: ProcessRole
PROCESS_READINESS_UNKNOWN: ProcessReadiness
READY: ProcessReadiness
NOT_READY: ProcessReadiness
STOPPED: ProcessReadiness

class MetadataEvent(_message.Message):
    __slots__ = ("min_fold_version", "event_id", "segment", "leadership_claimed", "local_log_trimmed", "log_start_advanced", "topic_policy_changed", "process_registered", "segment_dead_lettered", "log_start_requested", "partition_delete", "read_lease_taken", "gaps_recorded", "offload_requested", "topic_paused", "loss_accepted", "cluster_secret_set", "anomaly_reported", "offload_segment_changed", "policy_level_set")
    MIN_FOLD_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    LEADERSHIP_CLAIMED_FIELD_NUMBER: _ClassVar[int]
    LOCAL_LOG_TRIMMED_FIELD_NUMBER: _ClassVar[int]
    LOG_START_ADVANCED_FIELD_NUMBER: _ClassVar[int]
    TOPIC_POLICY_CHANGED_FIELD_NUMBER: _ClassVar[int]
    PROCESS_REGISTERED_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_DEAD_LETTERED_FIELD_NUMBER: _ClassVar[int]
    LOG_START_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    PARTITION_DELETE_FIELD_NUMBER: _ClassVar[int]
    READ_LEASE_TAKEN_FIELD_NUMBER: _ClassVar[int]
    GAPS_RECORDED_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    TOPIC_PAUSED_FIELD_NUMBER: _ClassVar[int]
    LOSS_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_SECRET_SET_FIELD_NUMBER: _ClassVar[int]
    ANOMALY_REPORTED_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_SEGMENT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    POLICY_LEVEL_SET_FIELD_NUMBER: _ClassVar[int]
    min_fold_version: int
    event_id: bytes
    segment: SegmentEvent
    leadership_claimed: LeadershipClaimed
    local_log_trimmed: LocalLogTrimmed
    log_start_advanced: LogStartAdvanced
    topic_policy_changed: TopicPolicyChanged
    process_registered: ProcessRegistered
    segment_dead_lettered: SegmentDeadLettered
    log_start_requested: LogStartRequested
    partition_delete: RemotePartitionDeleteMetadata
    read_lease_taken: ReadLeaseTaken
    gaps_recorded: GapsRecorded
    offload_requested: OffloadRequested
    topic_paused: TopicPaused
    loss_accepted: LossAccepted
    cluster_secret_set: ClusterSecretSet
    anomaly_reported: AnomalyReported
    offload_segment_changed: OffloadSegmentChanged
    policy_level_set: PolicyLevelSet
    def __init__(self, min_fold_version: _Optional[int] = ..., event_id: _Optional[bytes] = ..., segment: _Optional[_Union[SegmentEvent, _Mapping]] = ..., leadership_claimed: _Optional[_Union[LeadershipClaimed, _Mapping]] = ..., local_log_trimmed: _Optional[_Union[LocalLogTrimmed, _Mapping]] = ..., log_start_advanced: _Optional[_Union[LogStartAdvanced, _Mapping]] = ..., topic_policy_changed: _Optional[_Union[TopicPolicyChanged, _Mapping]] = ..., process_registered: _Optional[_Union[ProcessRegistered, _Mapping]] = ..., segment_dead_lettered: _Optional[_Union[SegmentDeadLettered, _Mapping]] = ..., log_start_requested: _Optional[_Union[LogStartRequested, _Mapping]] = ..., partition_delete: _Optional[_Union[RemotePartitionDeleteMetadata, _Mapping]] = ..., read_lease_taken: _Optional[_Union[ReadLeaseTaken, _Mapping]] = ..., gaps_recorded: _Optional[_Union[GapsRecorded, _Mapping]] = ..., offload_requested: _Optional[_Union[OffloadRequested, _Mapping]] = ..., topic_paused: _Optional[_Union[TopicPaused, _Mapping]] = ..., loss_accepted: _Optional[_Union[LossAccepted, _Mapping]] = ..., cluster_secret_set: _Optional[_Union[ClusterSecretSet, _Mapping]] = ..., anomaly_reported: _Optional[_Union[AnomalyReported, _Mapping]] = ..., offload_segment_changed: _Optional[_Union[OffloadSegmentChanged, _Mapping]] = ..., policy_level_set: _Optional[_Union[PolicyLevelSet, _Mapping]] = ...) -> None: ...

class SegmentEvent(_message.Message):
    __slots__ = ("metadata", "expected_state", "copy_timeout_ms", "copy_deadline_ms")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_STATE_FIELD_NUMBER: _ClassVar[int]
    COPY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COPY_DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    metadata: _segment_pb2.RemoteLogSegmentMetadata
    expected_state: _segment_pb2.SegmentState
    copy_timeout_ms: int
    copy_deadline_ms: int
    def __init__(self, metadata: _Optional[_Union[_segment_pb2.RemoteLogSegmentMetadata, _Mapping]] = ..., expected_state: _Optional[_Union[_segment_pb2.SegmentState, str]] = ..., copy_timeout_ms: _Optional[int] = ..., copy_deadline_ms: _Optional[int] = ...) -> None: ...

class SegmentDeadLettered(_message.Message):
    __slots__ = ("topic_id_partition", "id", "attempts")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    id: bytes
    attempts: int
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., id: _Optional[bytes] = ..., attempts: _Optional[int] = ...) -> None: ...

class LeadershipClaimed(_message.Message):
    __slots__ = ("topic_id_partition", "writer", "lineage")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    writer: _segment_pb2.Writer
    lineage: _containers.RepeatedCompositeFieldContainer[_segment_pb2.EpochEntry]
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., writer: _Optional[_Union[_segment_pb2.Writer, _Mapping]] = ..., lineage: _Optional[_Iterable[_Union[_segment_pb2.EpochEntry, _Mapping]]] = ...) -> None: ...

class LocalLogTrimmed(_message.Message):
    __slots__ = ("topic_id_partition", "writer", "offset", "lineage")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    writer: _segment_pb2.Writer
    offset: int
    lineage: _containers.RepeatedCompositeFieldContainer[_segment_pb2.EpochEntry]
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., writer: _Optional[_Union[_segment_pb2.Writer, _Mapping]] = ..., offset: _Optional[int] = ..., lineage: _Optional[_Iterable[_Union[_segment_pb2.EpochEntry, _Mapping]]] = ...) -> None: ...

class LogStartAdvanced(_message.Message):
    __slots__ = ("topic_id_partition", "writer", "offset", "reason")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    writer: _segment_pb2.Writer
    offset: int
    reason: str
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., writer: _Optional[_Union[_segment_pb2.Writer, _Mapping]] = ..., offset: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class LogStartRequested(_message.Message):
    __slots__ = ("topic_id_partition", "offset", "leader_epoch")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    offset: int
    leader_epoch: int
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class RemotePartitionDeleteMetadata(_message.Message):
    __slots__ = ("topic_id_partition", "state", "event_timestamp_ms", "broker_id")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    state: RemotePartitionDeleteState
    event_timestamp_ms: int
    broker_id: int
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., state: _Optional[_Union[RemotePartitionDeleteState, str]] = ..., event_timestamp_ms: _Optional[int] = ..., broker_id: _Optional[int] = ...) -> None: ...

class ReadLeaseTaken(_message.Message):
    __slots__ = ("topic_id_partition", "lease_id", "start_offset", "end_offset", "duration_ms", "holder")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    lease_id: bytes
    start_offset: int
    end_offset: int
    duration_ms: int
    holder: str
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., lease_id: _Optional[bytes] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., duration_ms: _Optional[int] = ..., holder: _Optional[str] = ...) -> None: ...

class RecordedGap(_message.Message):
    __slots__ = ("start_offset", "end_offset", "reason", "recorded_ms", "accepted_loss")
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RECORDED_MS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LOSS_FIELD_NUMBER: _ClassVar[int]
    start_offset: int
    end_offset: int
    reason: GapReason
    recorded_ms: int
    accepted_loss: bool
    def __init__(self, start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., reason: _Optional[_Union[GapReason, str]] = ..., recorded_ms: _Optional[int] = ..., accepted_loss: _Optional[bool] = ...) -> None: ...

class GapsRecorded(_message.Message):
    __slots__ = ("topic_id_partition", "writer", "gaps")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    writer: _segment_pb2.Writer
    gaps: _containers.RepeatedCompositeFieldContainer[RecordedGap]
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., writer: _Optional[_Union[_segment_pb2.Writer, _Mapping]] = ..., gaps: _Optional[_Iterable[_Union[RecordedGap, _Mapping]]] = ...) -> None: ...

class LossAccepted(_message.Message):
    __slots__ = ("topic_id_partition", "leader_epoch", "local_start_offset")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOCAL_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    leader_epoch: int
    local_start_offset: int
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., leader_epoch: _Optional[int] = ..., local_start_offset: _Optional[int] = ...) -> None: ...

class Anomaly(_message.Message):
    __slots__ = ("segment_id", "object_key", "kind", "first_ms", "last_ms", "attempts", "lost")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIRST_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    segment_id: bytes
    object_key: str
    kind: AnomalyKind
    first_ms: int
    last_ms: int
    attempts: int
    lost: _containers.RepeatedCompositeFieldContainer[LostOffsets]
    def __init__(self, segment_id: _Optional[bytes] = ..., object_key: _Optional[str] = ..., kind: _Optional[_Union[AnomalyKind, str]] = ..., first_ms: _Optional[int] = ..., last_ms: _Optional[int] = ..., attempts: _Optional[int] = ..., lost: _Optional[_Iterable[_Union[LostOffsets, _Mapping]]] = ...) -> None: ...

class LostOffsets(_message.Message):
    __slots__ = ("start_offset", "end_offset")
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    start_offset: int
    end_offset: int
    def __init__(self, start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class AnomalyReported(_message.Message):
    __slots__ = ("topic_id_partition", "anomaly")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ANOMALY_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    anomaly: Anomaly
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., anomaly: _Optional[_Union[Anomaly, _Mapping]] = ...) -> None: ...

class OffloadRequested(_message.Message):
    __slots__ = ("topic_id_partition", "offset")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    offset: int
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., offset: _Optional[int] = ...) -> None: ...

class OffloadPosition(_message.Message):
    __slots__ = ("ledger_id", "entry_id", "offset")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ledger_id: int
    entry_id: int
    offset: int
    def __init__(self, ledger_id: _Optional[int] = ..., entry_id: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class OffloadDriverProperty(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class OffloadSegmentChanged(_message.Message):
    __slots__ = ("topic_id_partition", "writer", "id", "status", "assigned_ms", "begin", "segment_ids", "driver_metadata", "offloaded_ms", "end", "objects")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_MS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    DRIVER_METADATA_FIELD_NUMBER: _ClassVar[int]
    OFFLOADED_MS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: _segment_pb2.TopicIdPartition
    writer: _segment_pb2.Writer
    id: bytes
    status: OffloadSegmentStatus
    assigned_ms: int
    begin: OffloadPosition
    segment_ids: _containers.RepeatedScalarFieldContainer[bytes]
    driver_metadata: _containers.RepeatedCompositeFieldContainer[OffloadDriverProperty]
    offloaded_ms: int
    end: OffloadPosition
    objects: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, topic_id_partition: _Optional[_Union[_segment_pb2.TopicIdPartition, _Mapping]] = ..., writer: _Optional[_Union[_segment_pb2.Writer, _Mapping]] = ..., id: _Optional[bytes] = ..., status: _Optional[_Union[OffloadSegmentStatus, str]] = ..., assigned_ms: _Optional[int] = ..., begin: _Optional[_Union[OffloadPosition, _Mapping]] = ..., segment_ids: _Optional[_Iterable[bytes]] = ..., driver_metadata: _Optional[_Iterable[_Union[OffloadDriverProperty, _Mapping]]] = ..., offloaded_ms: _Optional[int] = ..., end: _Optional[_Union[OffloadPosition, _Mapping]] = ..., objects: _Optional[_Iterable[str]] = ...) -> None: ...

class TopicPaused(_message.Message):
    __slots__ = ("topic", "topic_id", "tasks")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: bytes
    tasks: _containers.RepeatedScalarFieldContainer[PausableTask]
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., tasks: _Optional[_Iterable[_Union[PausableTask, str]]] = ...) -> None: ...

class OriginalConfig(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class TopicPolicyChanged(_message.Message):
    __slots__ = ("topic", "topic_id", "state", "retention_ms", "retention_bytes", "local_retention_ms", "local_retention_bytes", "originals", "delete_remote", "copy_lag_ms", "copy_lag_bytes", "outage_policy", "local_deletion_lag_ms", "copy_lag_since", "offload_mode", "offload_segment_max_bytes", "offload_segment_rollover_ms", "inherited", "untiered_retention_ms", "untiered_retention_bytes", "layout")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    ORIGINALS_FIELD_NUMBER: _ClassVar[int]
    DELETE_REMOTE_FIELD_NUMBER: _ClassVar[int]
    COPY_LAG_MS_FIELD_NUMBER: _ClassVar[int]
    COPY_LAG_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTAGE_POLICY_FIELD_NUMBER: _ClassVar[int]
    LOCAL_DELETION_LAG_MS_FIELD_NUMBER: _ClassVar[int]
    COPY_LAG_SINCE_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_MODE_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_SEGMENT_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_SEGMENT_ROLLOVER_MS_FIELD_NUMBER: _ClassVar[int]
    INHERITED_FIELD_NUMBER: _ClassVar[int]
    UNTIERED_RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIERED_RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: bytes
    state: PolicyState
    retention_ms: int
    retention_bytes: int
    local_retention_ms: int
    local_retention_bytes: int
    originals: _containers.RepeatedCompositeFieldContainer[OriginalConfig]
    delete_remote: bool
    copy_lag_ms: int
    copy_lag_bytes: int
    outage_policy: OutagePolicy
    local_deletion_lag_ms: int
    copy_lag_since: CopyLagSince
    offload_mode: OffloadMode
    offload_segment_max_bytes: int
    offload_segment_rollover_ms: int
    inherited: _containers.RepeatedScalarFieldContainer[PolicySetting]
    untiered_retention_ms: int
    untiered_retention_bytes: int
    layout: str
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., state: _Optional[_Union[PolicyState, str]] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., local_retention_ms: _Optional[int] = ..., local_retention_bytes: _Optional[int] = ..., originals: _Optional[_Iterable[_Union[OriginalConfig, _Mapping]]] = ..., delete_remote: _Optional[bool] = ..., copy_lag_ms: _Optional[int] = ..., copy_lag_bytes: _Optional[int] = ..., outage_policy: _Optional[_Union[OutagePolicy, str]] = ..., local_deletion_lag_ms: _Optional[int] = ..., copy_lag_since: _Optional[_Union[CopyLagSince, str]] = ..., offload_mode: _Optional[_Union[OffloadMode, str]] = ..., offload_segment_max_bytes: _Optional[int] = ..., offload_segment_rollover_ms: _Optional[int] = ..., inherited: _Optional[_Iterable[_Union[PolicySetting, str]]] = ..., untiered_retention_ms: _Optional[int] = ..., untiered_retention_bytes: _Optional[int] = ..., layout: _Optional[str] = ...) -> None: ...

class PolicyLevelSet(_message.Message):
    __slots__ = ("pattern", "retention_ms", "retention_bytes", "local_retention_ms", "local_retention_bytes", "copy_lag_ms", "copy_lag_bytes", "copy_lag_since", "outage_policy", "local_deletion_lag_ms", "offload_mode", "offload_segment_max_bytes", "offload_segment_rollover_ms", "layout")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    COPY_LAG_MS_FIELD_NUMBER: _ClassVar[int]
    COPY_LAG_BYTES_FIELD_NUMBER: _ClassVar[int]
    COPY_LAG_SINCE_FIELD_NUMBER: _ClassVar[int]
    OUTAGE_POLICY_FIELD_NUMBER: _ClassVar[int]
    LOCAL_DELETION_LAG_MS_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_MODE_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_SEGMENT_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_SEGMENT_ROLLOVER_MS_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    retention_ms: int
    retention_bytes: int
    local_retention_ms: int
    local_retention_bytes: int
    copy_lag_ms: int
    copy_lag_bytes: int
    copy_lag_since: CopyLagSince
    outage_policy: OutagePolicy
    local_deletion_lag_ms: int
    offload_mode: OffloadMode
    offload_segment_max_bytes: int
    offload_segment_rollover_ms: int
    layout: str
    def __init__(self, pattern: _Optional[str] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., local_retention_ms: _Optional[int] = ..., local_retention_bytes: _Optional[int] = ..., copy_lag_ms: _Optional[int] = ..., copy_lag_bytes: _Optional[int] = ..., copy_lag_since: _Optional[_Union[CopyLagSince, str]] = ..., outage_policy: _Optional[_Union[OutagePolicy, str]] = ..., local_deletion_lag_ms: _Optional[int] = ..., offload_mode: _Optional[_Union[OffloadMode, str]] = ..., offload_segment_max_bytes: _Optional[int] = ..., offload_segment_rollover_ms: _Optional[int] = ..., layout: _Optional[str] = ...) -> None: ...

class ProcessRegistered(_message.Message):
    __slots__ = ("process_id", "role", "broker_id", "http_address", "heartbeat_interval_ms", "version", "gateway_address", "applied", "boot_id", "network_namespace", "broker_address", "readiness", "unready_reasons", "incarnation", "serves_https", "file_defaults")
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    NETWORK_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    BROKER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    READINESS_FIELD_NUMBER: _ClassVar[int]
    UNREADY_REASONS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SERVES_HTTPS_FIELD_NUMBER: _ClassVar[int]
    FILE_DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    process_id: bytes
    role: ProcessRole
    broker_id: int
    http_address: str
    heartbeat_interval_ms: int
    version: str
    gateway_address: str
    applied: _containers.RepeatedCompositeFieldContainer[AppliedPosition]
    boot_id: str
    network_namespace: str
    broker_address: str
    readiness: ProcessReadiness
    unready_reasons: _containers.RepeatedScalarFieldContainer[str]
    incarnation: bytes
    serves_https: bool
    file_defaults: _containers.RepeatedCompositeFieldContainer[FileDefault]
    def __init__(self, process_id: _Optional[bytes] = ..., role: _Optional[_Union[ProcessRole, str]] = ..., broker_id: _Optional[int] = ..., http_address: _Optional[str] = ..., heartbeat_interval_ms: _Optional[int] = ..., version: _Optional[str] = ..., gateway_address: _Optional[str] = ..., applied: _Optional[_Iterable[_Union[AppliedPosition, _Mapping]]] = ..., boot_id: _Optional[str] = ..., network_namespace: _Optional[str] = ..., broker_address: _Optional[str] = ..., readiness: _Optional[_Union[ProcessReadiness, str]] = ..., unready_reasons: _Optional[_Iterable[str]] = ..., incarnation: _Optional[bytes] = ..., serves_https: _Optional[bool] = ..., file_defaults: _Optional[_Iterable[_Union[FileDefault, _Mapping]]] = ...) -> None: ...

class FileDefault(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class AppliedPosition(_message.Message):
    __slots__ = ("partition", "offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    offset: int
    def __init__(self, partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class SigningSecret(_message.Message):
    __slots__ = ("secret_id", "key")
    SECRET_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    secret_id: bytes
    key: bytes
    def __init__(self, secret_id: _Optional[bytes] = ..., key: _Optional[bytes] = ...) -> None: ...

class ClusterSecretSet(_message.Message):
    __slots__ = ("current", "previous")
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    current: SigningSecret
    previous: SigningSecret
    def __init__(self, current: _Optional[_Union[SigningSecret, _Mapping]] = ..., previous: _Optional[_Union[SigningSecret, _Mapping]] = ...) -> None: ...
