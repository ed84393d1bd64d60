from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SegmentState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEGMENT_STATE_UNKNOWN: _ClassVar[SegmentState]
    COPY_SEGMENT_STARTED: _ClassVar[SegmentState]
    COPY_SEGMENT_FINISHED: _ClassVar[SegmentState]
    DELETE_SEGMENT_STARTED: _ClassVar[SegmentState]
    DELETE_SEGMENT_FINISHED: _ClassVar[SegmentState]
SEGMENT_STATE_UNKNOWN: SegmentState
COPY_SEGMENT_STARTED: SegmentState
COPY_SEGMENT_FINISHED: SegmentState
DELETE_SEGMENT_STARTED: SegmentState
DELETE_SEGMENT_FINISHED: SegmentState

class TopicIdPartition(_message.Message):
    __slots__ = ("topic_id", "topic", "partition")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    topic: str
    partition: int
    def __init__(self, topic_id: _Optional[bytes] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class EpochEntry(_message.Message):
    __slots__ = ("epoch", "start_offset")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    start_offset: int
    def __init__(self, epoch: _Optional[int] = ..., start_offset: _Optional[int] = ...) -> None: ...

class Writer(_message.Message):
    __slots__ = ("broker_id", "leader_epoch", "incarnation")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    leader_epoch: int
    incarnation: bytes
    def __init__(self, broker_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., incarnation: _Optional[bytes] = ...) -> None: ...

class StoredObject(_message.Message):
    __slots__ = ("key", "length_bytes", "crc32c")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LENGTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    key: str
    length_bytes: int
    crc32c: int
    def __init__(self, key: _Optional[str] = ..., length_bytes: _Optional[int] = ..., crc32c: _Optional[int] = ...) -> None: ...

class ChunkTable(_message.Message):
    __slots__ = ("key_prefix", "planned_count", "length_bytes", "crc32c")
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PLANNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    LENGTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    key_prefix: str
    planned_count: int
    length_bytes: _containers.RepeatedScalarFieldContainer[int]
    crc32c: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, key_prefix: _Optional[str] = ..., planned_count: _Optional[int] = ..., length_bytes: _Optional[_Iterable[int]] = ..., crc32c: _Optional[_Iterable[int]] = ...) -> None: ...

class RemoteLogSegmentMetadata(_message.Message):
    __slots__ = ("topic_id_partition", "id", "start_offset", "end_offset", "max_timestamp_ms", "segment_size_bytes", "segment_leader_epochs", "state", "writer", "event_timestamp_ms", "layout", "objects", "has_transaction_index", "custom_metadata", "is_open", "chunks")
    TOPIC_ID_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_LEADER_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    HAS_TRANSACTION_INDEX_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_METADATA_FIELD_NUMBER: _ClassVar[int]
    IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    topic_id_partition: TopicIdPartition
    id: bytes
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    segment_size_bytes: int
    segment_leader_epochs: _containers.RepeatedCompositeFieldContainer[EpochEntry]
    state: SegmentState
    writer: Writer
    event_timestamp_ms: int
    layout: str
    objects: _containers.RepeatedCompositeFieldContainer[StoredObject]
    has_transaction_index: bool
    custom_metadata: bytes
    is_open: bool
    chunks: ChunkTable
    def __init__(self, topic_id_partition: _Optional[_Union[TopicIdPartition, _Mapping]] = ..., id: _Optional[bytes] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., max_timestamp_ms: _Optional[int] = ..., segment_size_bytes: _Optional[int] = ..., segment_leader_epochs: _Optional[_Iterable[_Union[EpochEntry, _Mapping]]] = ..., state: _Optional[_Union[SegmentState, str]] = ..., writer: _Optional[_Union[Writer, _Mapping]] = ..., event_timestamp_ms: _Optional[int] = ..., layout: _Optional[str] = ..., objects: _Optional[_Iterable[_Union[StoredObject, _Mapping]]] = ..., has_transaction_index: _Optional[bool] = ..., custom_metadata: _Optional[bytes] = ..., is_open: _Optional[bool] = ..., chunks: _Optional[_Union[ChunkTable, _Mapping]] = ...) -> None: ...
