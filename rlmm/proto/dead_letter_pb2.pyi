from rsm.segment.proto import segment_pb2 as _segment_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OrphanTreatment(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORPHAN_TREATMENT_UNKNOWN: _ClassVar[OrphanTreatment]
    ORPHAN_DELETE: _ClassVar[OrphanTreatment]
    ORPHAN_QUARANTINE: _ClassVar[OrphanTreatment]
ORPHAN_TREATMENT_UNKNOWN: OrphanTreatment
ORPHAN_DELETE: OrphanTreatment
ORPHAN_QUARANTINE: OrphanTreatment

class DeadLetter(_message.Message):
    __slots__ = ("min_fold_version", "metadata", "object_keys", "reason", "attempts", "first_attempt_ms", "last_attempt_ms", "metadata_partition", "metadata_offset", "metadata_topic_id", "orphan", "repair_attempts")
    MIN_FOLD_VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OBJECT_KEYS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ATTEMPT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_MS_FIELD_NUMBER: _ClassVar[int]
    METADATA_PARTITION_FIELD_NUMBER: _ClassVar[int]
    METADATA_OFFSET_FIELD_NUMBER: _ClassVar[int]
    METADATA_TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    ORPHAN_FIELD_NUMBER: _ClassVar[int]
    REPAIR_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    min_fold_version: int
    metadata: _segment_pb2.RemoteLogSegmentMetadata
    object_keys: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    attempts: int
    first_attempt_ms: int
    last_attempt_ms: int
    metadata_partition: int
    metadata_offset: int
    metadata_topic_id: str
    orphan: OrphanObject
    repair_attempts: int
    def __init__(self, min_fold_version: _Optional[int] = ..., metadata: _Optional[_Union[_segment_pb2.RemoteLogSegmentMetadata, _Mapping]] = ..., object_keys: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., attempts: _Optional[int] = ..., first_attempt_ms: _Optional[int] = ..., last_attempt_ms: _Optional[int] = ..., metadata_partition: _Optional[int] = ..., metadata_offset: _Optional[int] = ..., metadata_topic_id: _Optional[str] = ..., orphan: _Optional[_Union[OrphanObject, _Mapping]] = ..., repair_attempts: _Optional[int] = ...) -> None: ...

class OrphanObject(_message.Message):
    __slots__ = ("key", "length_bytes", "last_modified_ms", "first_seen_ms", "last_seen_ms", "treatment")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LENGTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_MODIFIED_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    TREATMENT_FIELD_NUMBER: _ClassVar[int]
    key: str
    length_bytes: int
    last_modified_ms: int
    first_seen_ms: int
    last_seen_ms: int
    treatment: OrphanTreatment
    def __init__(self, key: _Optional[str] = ..., length_bytes: _Optional[int] = ..., last_modified_ms: _Optional[int] = ..., first_seen_ms: _Optional[int] = ..., last_seen_ms: _Optional[int] = ..., treatment: _Optional[_Union[OrphanTreatment, str]] = ...) -> None: ...
