"""Converts segment metadata to and from protobuf (rsm/segment/proto/segment.proto). Pure.

A missing or inconsistent field raises CorruptError. An enum value of a newer version raises
UnsupportedError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.proto import segment_pb2 as pb
from rsm.segment.proto.chunk_table import decode_objects, encode_objects
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields
from rsm.segment.ranges import OffsetRange

E = TypeVar("E", bound=Enum)
_STATES = {state.value: state for state in SegmentState}


def id_from_bytes(raw: bytes) -> UUID:
    """Decode a 16-byte id. Raises CorruptError for any other length."""
    if len(raw) != 16:
        raise CorruptError("the id is invalid: expected 16 bytes", length_bytes=len(raw))
    return UUID(bytes=raw)


def enum_from_number(kind: type[E], number: int, what: str) -> E:
    """Decode a member of an enum. Raises UnsupportedError for a value of a newer version."""
    try:
        return kind(number)
    except ValueError as error:
        raise UnsupportedError(f"the {what} is unknown", number=number) from error


def partition_to_message(value: TopicIdPartition) -> pb.TopicIdPartition:
    """Encode a topic-id-partition."""
    return pb.TopicIdPartition(
        topic_id=value.topic_id.bytes, topic=value.topic, partition=value.partition
    )


def partition_from_message(message: pb.TopicIdPartition) -> TopicIdPartition:
    """Decode a topic-id-partition. Raises CorruptError."""
    try:
        return TopicIdPartition(
            topic_id=id_from_bytes(message.topic_id),
            topic=message.topic,
            partition=message.partition,
        )
    except ValueError as error:
        raise CorruptError(
            "the topic-id-partition is invalid", topic=message.topic, reason=str(error)
        ) from error


def writer_to_message(value: Writer) -> pb.Writer:
    """Encode a writer."""
    return pb.Writer(
        broker_id=value.broker_id,
        leader_epoch=value.leader_epoch,
        incarnation=value.incarnation.bytes,
    )


def writer_from_message(message: pb.Writer) -> Writer:
    """Decode a writer. Raises CorruptError."""
    return _writer(message.broker_id, message.leader_epoch, message.incarnation)


@lru_cache(maxsize=1024)
def _writer(broker_id: int, leader_epoch: int, incarnation: bytes) -> Writer:
    """Return a shared instance: a few processes write the metadata of all segments."""
    return Writer(
        broker_id=broker_id, leader_epoch=leader_epoch, incarnation=id_from_bytes(incarnation)
    )


def lineage_to_messages(value: Lineage) -> list[pb.EpochEntry]:
    """Encode a lineage, entry by entry."""
    return [pb.EpochEntry(epoch=e.epoch, start_offset=e.start_offset) for e in value.entries]


def lineage_from_messages(messages: list[pb.EpochEntry]) -> Lineage:
    """Decode a lineage. Raises CorruptError if the entries are invalid or do not ascend."""
    try:
        return Lineage(
            entries=tuple(
                [EpochEntry(epoch=m.epoch, start_offset=m.start_offset) for m in messages]
            )
        )
    except ValueError as error:
        raise CorruptError("the leader epochs are invalid", reason=str(error)) from error


def metadata_to_message(value: RemoteLogSegmentMetadata) -> pb.RemoteLogSegmentMetadata:
    """Encode a segment's metadata."""
    message = pb.RemoteLogSegmentMetadata(
        topic_id_partition=partition_to_message(value.topic_id_partition),
        id=value.segment_id.id.bytes,
        start_offset=value.offsets.start_offset,
        end_offset=value.offsets.end_offset,
        max_timestamp_ms=value.max_timestamp_ms,
        segment_size_bytes=value.segment_size_bytes,
        segment_leader_epochs=lineage_to_messages(value.segment_leader_epochs),
        state=value.state.name,
        writer=writer_to_message(value.writer),
        event_timestamp_ms=value.event_timestamp_ms,
        layout=value.layout,
        has_transaction_index=value.has_transaction_index,
        custom_metadata=value.custom_metadata,
        is_open=value.is_open,
    )
    encode_objects(message, value.objects)
    restore_unknown_fields(message, value.unknown_fields)
    return message


def metadata_from_message(message: pb.RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    """Decode a segment's metadata.

    Raises CorruptError. Raises UnsupportedError for an unknown state.
    """
    try:
        return RemoteLogSegmentMetadata(
            **{name: read(message) for name, read in _METADATA_FIELDS.items()}
        )
    except ValueError as error:
        raise CorruptError("the segment metadata is invalid", reason=str(error)) from error


def metadata_on_demand(
    message: pb.RemoteLogSegmentMetadata, known: TopicIdPartition | None = None
) -> RemoteLogSegmentMetadata:
    """Return metadata that decodes each field of a validated message at the first access.

    Use it to read a few fields of many segments. It does not check the message again. An access
    raises the errors of the field's decoder. `known` is the partition if the caller has already
    looked it up by id and number; only its name is compared with the message.
    """
    made = object.__new__(_MetadataOnDemand)
    made.__dict__["message"] = message
    made.__dict__["known"] = known
    return made


class _MetadataOnDemand(RemoteLogSegmentMetadata):
    """Represents metadata whose fields are decoded on demand; equals the decoded metadata.

    Several threads may read the same field at once. A copy with changes decodes all fields.
    """

    message: pb.RemoteLogSegmentMetadata
    known: TopicIdPartition | None

    def __repr__(self) -> str:
        whole = {name: getattr(self, name) for name in _METADATA_FIELDS}
        return repr(RemoteLogSegmentMetadata(**whole))


class _OnDemandField:
    """Decodes a field at the first access, and stores the value in the instance."""

    def __init__(self, name: str, read: Callable[[pb.RemoteLogSegmentMetadata], object]) -> None:
        self._name = name
        self._read = read

    def __get__(self, instance: _MetadataOnDemand, _owner: object = None) -> object:
        known, message = instance.known, instance.message
        if self._name == "segment_id" and known and known.topic == message.topic_id_partition.topic:
            value: object = RemoteLogSegmentId(
                topic_id_partition=known, id=id_from_bytes(message.id)
            )
        else:
            value = self._read(message)
        instance.__dict__[self._name] = value
        return value


def state_from_number(number: int) -> SegmentState:
    """Decode a state. Raises UnsupportedError."""
    return _STATES.get(number) or enum_from_number(SegmentState, number, "segment state")


_METADATA_FIELDS: Mapping[str, Callable[[pb.RemoteLogSegmentMetadata], Any]] = {
    "segment_id": lambda message: RemoteLogSegmentId(
        topic_id_partition=partition_from_message(message.topic_id_partition),
        id=id_from_bytes(message.id),
    ),
    "offsets": lambda message: OffsetRange(
        start_offset=message.start_offset, end_offset=message.end_offset
    ),
    "max_timestamp_ms": attrgetter("max_timestamp_ms"),
    "segment_size_bytes": attrgetter("segment_size_bytes"),
    "segment_leader_epochs": lambda message: lineage_from_messages(
        message.segment_leader_epochs[:]
    ),
    "state": lambda message: state_from_number(message.state),
    "writer": lambda message: writer_from_message(message.writer),
    "event_timestamp_ms": attrgetter("event_timestamp_ms"),
    "layout": attrgetter("layout"),
    "objects": decode_objects,
    "has_transaction_index": attrgetter("has_transaction_index"),
    "custom_metadata": attrgetter("custom_metadata"),
    "is_open": attrgetter("is_open"),
    "unknown_fields": unknown_fields,
}
"""Maps each field to its decoder, which raises UnsupportedError, CorruptError or ValueError."""

for _name, _read in _METADATA_FIELDS.items():
    setattr(_MetadataOnDemand, _name, _OnDemandField(_name, _read))
