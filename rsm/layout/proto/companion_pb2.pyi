from rsm.segment.proto import segment_pb2 as _segment_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AbortedTransaction(_message.Message):
    __slots__ = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_STABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    def __init__(self, producer_id: _Optional[int] = ..., first_offset: _Optional[int] = ..., last_offset: _Optional[int] = ..., last_stable_offset: _Optional[int] = ...) -> None: ...

class Companion(_message.Message):
    __slots__ = ("segment", "offset_index", "time_index", "transaction_index", "producer_snapshot", "lineage", "aborted_transactions", "crc32c")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_INDEX_FIELD_NUMBER: _ClassVar[int]
    TIME_INDEX_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_INDEX_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    ABORTED_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    segment: _segment_pb2.RemoteLogSegmentMetadata
    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    producer_snapshot: bytes
    lineage: _containers.RepeatedCompositeFieldContainer[_segment_pb2.EpochEntry]
    aborted_transactions: _containers.RepeatedCompositeFieldContainer[AbortedTransaction]
    crc32c: int
    def __init__(self, segment: _Optional[_Union[_segment_pb2.RemoteLogSegmentMetadata, _Mapping]] = ..., offset_index: _Optional[bytes] = ..., time_index: _Optional[bytes] = ..., transaction_index: _Optional[bytes] = ..., producer_snapshot: _Optional[bytes] = ..., lineage: _Optional[_Iterable[_Union[_segment_pb2.EpochEntry, _Mapping]]] = ..., aborted_transactions: _Optional[_Iterable[_Union[AbortedTransaction, _Mapping]]] = ..., crc32c: _Optional[int] = ...) -> None: ...
