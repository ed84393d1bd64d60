from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OffloadProperty(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class OffloadDriverMetadata(_message.Message):
    __slots__ = ("name", "property")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROPERTY_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    property: _containers.RepeatedCompositeFieldContainer[OffloadProperty]
    def __init__(self, name: _Optional[bytes] = ..., property: _Optional[_Iterable[_Union[OffloadProperty, _Mapping]]] = ...) -> None: ...

class OffloadSegment(_message.Message):
    __slots__ = ("uid_msb", "uid_lsb", "complete", "bookkeeper_deleted", "assigned_timestamp", "offloaded_timestamp", "end_entry_id", "driver_metadata")
    UID_MSB_FIELD_NUMBER: _ClassVar[int]
    UID_LSB_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BOOKKEEPER_DELETED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    OFFLOADED_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    END_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    DRIVER_METADATA_FIELD_NUMBER: _ClassVar[int]
    uid_msb: int
    uid_lsb: int
    complete: bool
    bookkeeper_deleted: bool
    assigned_timestamp: int
    offloaded_timestamp: int
    end_entry_id: int
    driver_metadata: OffloadDriverMetadata
    def __init__(self, uid_msb: _Optional[int] = ..., uid_lsb: _Optional[int] = ..., complete: _Optional[bool] = ..., bookkeeper_deleted: _Optional[bool] = ..., assigned_timestamp: _Optional[int] = ..., offloaded_timestamp: _Optional[int] = ..., end_entry_id: _Optional[int] = ..., driver_metadata: _Optional[_Union[OffloadDriverMetadata, _Mapping]] = ...) -> None: ...

class OffloadContext(_message.Message):
    __slots__ = ("uid_msb", "uid_lsb", "complete", "bookkeeper_deleted", "timestamp", "driver_metadata", "offload_segment")
    UID_MSB_FIELD_NUMBER: _ClassVar[int]
    UID_LSB_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BOOKKEEPER_DELETED_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    DRIVER_METADATA_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    uid_msb: int
    uid_lsb: int
    complete: bool
    bookkeeper_deleted: bool
    timestamp: int
    driver_metadata: OffloadDriverMetadata
    offload_segment: _containers.RepeatedCompositeFieldContainer[OffloadSegment]
    def __init__(self, uid_msb: _Optional[int] = ..., uid_lsb: _Optional[int] = ..., complete: _Optional[bool] = ..., bookkeeper_deleted: _Optional[bool] = ..., timestamp: _Optional[int] = ..., driver_metadata: _Optional[_Union[OffloadDriverMetadata, _Mapping]] = ..., offload_segment: _Optional[_Iterable[_Union[OffloadSegment, _Mapping]]] = ...) -> None: ...

class LedgerInfo(_message.Message):
    __slots__ = ("ledger_id", "entries", "size", "timestamp", "offload_context", "property")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PROPERTY_FIELD_NUMBER: _ClassVar[int]
    ledger_id: int
    entries: int
    size: int
    timestamp: int
    offload_context: OffloadContext
    property: _containers.RepeatedCompositeFieldContainer[OffloadProperty]
    def __init__(self, ledger_id: _Optional[int] = ..., entries: _Optional[int] = ..., size: _Optional[int] = ..., timestamp: _Optional[int] = ..., offload_context: _Optional[_Union[OffloadContext, _Mapping]] = ..., property: _Optional[_Iterable[_Union[OffloadProperty, _Mapping]]] = ...) -> None: ...
