"""Decodes records of `__remote_log_metadata`, the topic of Kafka's tiered storage (KIP-405). Pure.

A value consists of three unsigned varints (frame version, record type, version of the type) and a
message in the flexible encoding (KIP-482). Names and meanings are Kafka's: unlike elsewhere in
`rlm`, `end_offset` is the last offset of a segment, not the offset after it.
Source: org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from uuid import UUID

from rsm.segment.batches.varint import read_unsigned_varint
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata_codec import enum_from_number

NATIVE_TOPIC = "__remote_log_metadata"

_INT8 = Struct(">b")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_UUID_BYTES = 16
_EPOCH_BYTES_AT_LEAST = 13  # epoch, offset, no tagged fields
_FRAME_VERSION = 1
_VERSION = 0
_TXN_INDEX_EMPTY_TAG = 0


class NativeSegmentState(IntEnum):
    """Represents Kafka's RemoteLogSegmentState by its id."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class NativePartitionDeleteState(IntEnum):
    """Represents Kafka's RemotePartitionDeleteState by its id."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSegmentFacts:
    """Represents the fields of a segment's first record, or of its snapshot.

    `segment_leader_epochs` contains pairs of epoch and start offset. `custom_metadata` is the
    RemoteStorageManager's.
    """

    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: tuple[tuple[int, int], ...]
    segment_size_bytes: int
    custom_metadata: bytes | None
    state: NativeSegmentState
    txn_index_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataRecord:
    """Represents type 0: the start of a segment's copy."""

    segment_id: RemoteLogSegmentId
    facts: NativeSegmentFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataUpdateRecord:
    """Represents type 1: a segment's next state."""

    segment_id: RemoteLogSegmentId
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    state: NativeSegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadataRecord:
    """Represents type 2: the next state of a partition's deletion."""

    topic_id_partition: TopicIdPartition
    broker_id: int
    event_timestamp_ms: int
    state: NativePartitionDeleteState


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataSnapshotRecord:
    """Represents type 3: a segment in a snapshot, whose partition is the snapshot's."""

    segment_id: UUID
    facts: NativeSegmentFacts


NativeRecord = (
    RemoteLogSegmentMetadataRecord
    | RemoteLogSegmentMetadataUpdateRecord
    | RemotePartitionDeleteMetadataRecord
    | RemoteLogSegmentMetadataSnapshotRecord
)


def decode_native(value: bytes) -> NativeRecord:
    """Decode a record's value.

    Raises CorruptError if the value is invalid, UnsupportedError if its type, version or a state
    is unknown. Checks each length before it allocates memory.
    """
    fields = _Fields(value)
    frame_version = fields.unsigned_varint()
    record_type, version = fields.unsigned_varint(), fields.unsigned_varint()
    read = _READERS.get(record_type)
    if read is None or (frame_version, version) != (_FRAME_VERSION, _VERSION):
        raise UnsupportedError(
            "cannot read a record of remote log metadata: its type or version is unknown",
            frame_version=frame_version,
            type=record_type,
            version=version,
        )
    record = read(fields)
    fields.require_end()
    return record


def topic_of_native(record: NativeRecord) -> str | None:
    """Return the name of a record's user topic; None for a snapshot, which does not contain it."""
    match record:
        case RemoteLogSegmentMetadataSnapshotRecord():
            return None
        case RemotePartitionDeleteMetadataRecord():
            return record.topic_id_partition.topic
        case _:
            return record.segment_id.topic_id_partition.topic


class _Fields:
    """Reads the fields of one message, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int8(self) -> int:
        return self._number(_INT8)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def unsigned_varint(self) -> int:
        value, self._position = read_unsigned_varint(self._data, self._position)
        return value

    def uuid(self) -> UUID:
        return UUID(bytes=self._take(_UUID_BYTES))

    def string(self) -> str:
        content = self.nullable_bytes()
        if content is None:
            raise CorruptError("cannot read a name: it is null", position=self._position)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise CorruptError(
                "cannot read a name: it is not UTF-8", position=self._position
            ) from error

    def nullable_bytes(self) -> bytes | None:
        length = self.unsigned_varint() - 1
        return None if length < 0 else self._take(length)

    def array_length(self, least_bytes: int) -> int:
        """Return an array's length; each of its elements takes at least `least_bytes` bytes."""
        length = self.unsigned_varint() - 1
        if not 0 <= length * least_bytes <= self._left_bytes:
            raise CorruptError(
                "cannot read an array: it is null, or longer than its message", length=length
            )
        return length

    def tagged(self) -> Mapping[int, bytes]:
        fields: dict[int, bytes] = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            fields[tag] = self._take(self.unsigned_varint())
        return fields

    def require_end(self) -> None:
        if self._left_bytes:
            raise CorruptError(
                "cannot read a message: more bytes follow its end", left_bytes=self._left_bytes
            )

    @property
    def _left_bytes(self) -> int:
        return len(self._data) - self._position

    def _number(self, layout: Struct) -> int:
        number: int = layout.unpack(self._take(layout.size))[0]
        return number

    def _take(self, length: int) -> bytes:
        if length > self._left_bytes:
            raise CorruptError(
                "cannot read a message: it is truncated",
                position=self._position,
                wanted_bytes=length,
            )
        start, self._position = self._position, self._position + length
        return self._data[start : self._position]


def _read_segment(fields: _Fields) -> RemoteLogSegmentMetadataRecord:
    return RemoteLogSegmentMetadataRecord(
        segment_id=_segment_id(fields), facts=_segment_facts(fields)
    )


def _read_update(fields: _Fields) -> RemoteLogSegmentMetadataUpdateRecord:
    record = RemoteLogSegmentMetadataUpdateRecord(
        segment_id=_segment_id(fields),
        broker_id=fields.int32(),
        event_timestamp_ms=fields.int64(),
        custom_metadata=fields.nullable_bytes(),
        state=_segment_state(fields),
    )
    fields.tagged()
    return record


def _read_partition_delete(fields: _Fields) -> RemotePartitionDeleteMetadataRecord:
    record = RemotePartitionDeleteMetadataRecord(
        topic_id_partition=_topic_id_partition(fields),
        broker_id=fields.int32(),
        event_timestamp_ms=fields.int64(),
        state=_partition_delete_state(fields),
    )
    fields.tagged()
    return record


def _read_snapshot(fields: _Fields) -> RemoteLogSegmentMetadataSnapshotRecord:
    return RemoteLogSegmentMetadataSnapshotRecord(
        segment_id=fields.uuid(), facts=_segment_facts(fields)
    )


_READERS: Mapping[int, Callable[[_Fields], NativeRecord]] = {
    0: _read_segment,
    1: _read_update,
    2: _read_partition_delete,
    3: _read_snapshot,
}


def _segment_facts(fields: _Fields) -> NativeSegmentFacts:
    """Read the fields from the start offset to the end of the message."""
    start_offset, end_offset, broker_id = fields.int64(), fields.int64(), fields.int32()
    max_timestamp_ms, event_timestamp_ms = fields.int64(), fields.int64()
    epochs = tuple(_epoch(fields) for _ in range(fields.array_length(_EPOCH_BYTES_AT_LEAST)))
    size_bytes, custom_metadata = fields.int32(), fields.nullable_bytes()
    state = _segment_state(fields)
    flag = fields.tagged().get(_TXN_INDEX_EMPTY_TAG, b"\0")
    if flag not in (b"\0", b"\1"):
        raise CorruptError(
            "cannot read a tagged field: its value is not a boolean", tag=_TXN_INDEX_EMPTY_TAG
        )
    return NativeSegmentFacts(
        start_offset=start_offset,
        end_offset=end_offset,
        broker_id=broker_id,
        max_timestamp_ms=max_timestamp_ms,
        event_timestamp_ms=event_timestamp_ms,
        segment_leader_epochs=epochs,
        segment_size_bytes=size_bytes,
        custom_metadata=custom_metadata,
        state=state,
        txn_index_empty=flag == b"\1",
    )


def _epoch(fields: _Fields) -> tuple[int, int]:
    entry = (fields.int32(), fields.int64())
    fields.tagged()
    return entry


def _segment_id(fields: _Fields) -> RemoteLogSegmentId:
    segment_id = RemoteLogSegmentId(
        topic_id_partition=_topic_id_partition(fields), id=fields.uuid()
    )
    fields.tagged()
    return segment_id


def _topic_id_partition(fields: _Fields) -> TopicIdPartition:
    topic, topic_id, partition = fields.string(), fields.uuid(), fields.int32()
    fields.tagged()
    if partition < 0:
        raise CorruptError(
            "cannot read a partition: its number is negative", topic=topic, partition=partition
        )
    return TopicIdPartition(topic_id=topic_id, topic=topic, partition=partition)


def _segment_state(fields: _Fields) -> NativeSegmentState:
    return enum_from_number(NativeSegmentState, fields.int8(), "segment state")


def _partition_delete_state(fields: _Fields) -> NativePartitionDeleteState:
    return enum_from_number(NativePartitionDeleteState, fields.int8(), "partition deletion state")
