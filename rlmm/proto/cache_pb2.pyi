from rlmm.proto import events_pb2 as _events_pb2
from rsm.segment.proto import segment_pb2 as _segment_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CacheIdentity(_message.Message):
    __slots__ = ("schema_version", "cluster_id", "topic_id", "partition_count", "fold_version")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    FOLD_VERSION_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    cluster_id: str
    topic_id: str
    partition_count: int
    fold_version: int
    def __init__(self, schema_version: _Optional[int] = ..., cluster_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition_count: _Optional[int] = ..., fold_version: _Optional[int] = ...) -> None: ...

class ReadLease(_message.Message):
    __slots__ = ("lease_id", "start_offset", "end_offset", "expires_ms", "holder")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    lease_id: bytes
    start_offset: int
    end_offset: int
    expires_ms: int
    holder: str
    def __init__(self, lease_id: _Optional[bytes] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., expires_ms: _Optional[int] = ..., holder: _Optional[str] = ...) -> None: ...

class LogStart(_message.Message):
    __slots__ = ("offset", "leader_epoch")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class PartitionState(_message.Message):
    __slots__ = ("owner", "lineage", "log_starts", "trims", "log_start_requests", "read_leases", "gaps", "offload_requested_offset", "accepted_loss_epoch", "accepted_start_offset", "gaps_epoch", "anomalies")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    LOG_STARTS_FIELD_NUMBER: _ClassVar[int]
    TRIMS_FIELD_NUMBER: _ClassVar[int]
    LOG_START_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    READ_LEASES_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_REQUESTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LOSS_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    GAPS_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ANOMALIES_FIELD_NUMBER: _ClassVar[int]
    owner: _segment_pb2.Writer
    lineage: _containers.RepeatedCompositeFieldContainer[_segment_pb2.EpochEntry]
    log_starts: _containers.RepeatedCompositeFieldContainer[LogStart]
    trims: _containers.RepeatedCompositeFieldContainer[LogStart]
    log_start_requests: _containers.RepeatedCompositeFieldContainer[LogStart]
    read_leases: _containers.RepeatedCompositeFieldContainer[ReadLease]
    gaps: _containers.RepeatedCompositeFieldContainer[_events_pb2.RecordedGap]
    offload_requested_offset: int
    accepted_loss_epoch: int
    accepted_start_offset: int
    gaps_epoch: int
    anomalies: _containers.RepeatedCompositeFieldContainer[_events_pb2.Anomaly]
    def __init__(self, owner: _Optional[_Union[_segment_pb2.Writer, _Mapping]] = ..., lineage: _Optional[_Iterable[_Union[_segment_pb2.EpochEntry, _Mapping]]] = ..., log_starts: _Optional[_Iterable[_Union[LogStart, _Mapping]]] = ..., trims: _Optional[_Iterable[_Union[LogStart, _Mapping]]] = ..., log_start_requests: _Optional[_Iterable[_Union[LogStart, _Mapping]]] = ..., read_leases: _Optional[_Iterable[_Union[ReadLease, _Mapping]]] = ..., gaps: _Optional[_Iterable[_Union[_events_pb2.RecordedGap, _Mapping]]] = ..., offload_requested_offset: _Optional[int] = ..., accepted_loss_epoch: _Optional[int] = ..., accepted_start_offset: _Optional[int] = ..., gaps_epoch: _Optional[int] = ..., anomalies: _Optional[_Iterable[_Union[_events_pb2.Anomaly, _Mapping]]] = ...) -> None: ...
