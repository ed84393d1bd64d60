from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LedgerEnsemble(_message.Message):
    __slots__ = ("member", "first_entry_id")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    FIRST_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    member: _containers.RepeatedScalarFieldContainer[bytes]
    first_entry_id: int
    def __init__(self, member: _Optional[_Iterable[bytes]] = ..., first_entry_id: _Optional[int] = ...) -> None: ...

class LedgerCustomEntry(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class LedgerMetadata(_message.Message):
    __slots__ = ("write_quorum_count", "ensemble_count", "length_bytes", "last_entry_id", "state", "ensemble", "digest_type", "password", "ack_quorum_count", "created_ms", "custom")
    WRITE_QUORUM_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENSEMBLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LENGTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENSEMBLE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_TYPE_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    ACK_QUORUM_COUNT_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_FIELD_NUMBER: _ClassVar[int]
    write_quorum_count: int
    ensemble_count: int
    length_bytes: int
    last_entry_id: int
    state: int
    ensemble: _containers.RepeatedCompositeFieldContainer[LedgerEnsemble]
    digest_type: int
    password: bytes
    ack_quorum_count: int
    created_ms: int
    custom: _containers.RepeatedCompositeFieldContainer[LedgerCustomEntry]
    def __init__(self, write_quorum_count: _Optional[int] = ..., ensemble_count: _Optional[int] = ..., length_bytes: _Optional[int] = ..., last_entry_id: _Optional[int] = ..., state: _Optional[int] = ..., ensemble: _Optional[_Iterable[_Union[LedgerEnsemble, _Mapping]]] = ..., digest_type: _Optional[int] = ..., password: _Optional[bytes] = ..., ack_quorum_count: _Optional[int] = ..., created_ms: _Optional[int] = ..., custom: _Optional[_Iterable[_Union[LedgerCustomEntry, _Mapping]]] = ...) -> None: ...
