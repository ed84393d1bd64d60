"""Encodes the values of the cache's small tables; converts segment entries to the SPI's types."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from rlmm.codec import FOLD_VERSION
from rlmm.events.event import parse_value
from rlmm.events.registry import PARTITION_FAMILIES
from rlmm.positions import MetadataPosition, ReadPosition, TopicIdentity, TopicRecord
from rlmm.proto import cache_pb2 as pb
from rlmm.spi import NewerRecord, SegmentRecord
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rlmm.state.segment_entry import SegmentEntry
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.metadata_codec import (
    lineage_from_messages,
    metadata_on_demand,
)
from rsm.segment.proto.chunk_table import decode_keys

SCHEMA_VERSION = 13
"""The version of the cache's layouts. A process rebuilds a cache of another version.

Increase it with each change of a layout or of the set of folded records.
"""

_POSITION = Struct(">qiq")
_NEWER = Struct(">qiq")


def identity_to_bytes(identity: TopicIdentity) -> bytes:
    """Encode the topic of a cache, with the schema version and the fold version."""
    return pb.CacheIdentity(
        schema_version=SCHEMA_VERSION,
        cluster_id=identity.cluster_id,
        topic_id=identity.topic_id,
        partition_count=identity.partition_count,
        fold_version=FOLD_VERSION,
    ).SerializeToString()


def identity_from_bytes(value: bytes) -> TopicIdentity | None:
    """Decode an identity; return None if it is damaged or of another schema or fold version."""
    try:
        message = pb.CacheIdentity.FromString(value)
    except DecodeError:
        return None
    if (message.schema_version, message.fold_version) != (SCHEMA_VERSION, FOLD_VERSION):
        return None
    return TopicIdentity(
        cluster_id=message.cluster_id,
        topic_id=message.topic_id,
        partition_count=message.partition_count,
    )


def position_to_bytes(position: ReadPosition) -> bytes:
    """Encode the position to which a metadata partition was read."""
    return _POSITION.pack(position.offset, position.leader_epoch, position.append_time_ms)


def position_from_bytes(value: bytes) -> ReadPosition:
    """Decode a position."""
    offset, leader_epoch, append_time_ms = _POSITION.unpack(value)
    return ReadPosition(offset=offset, leader_epoch=leader_epoch, append_time_ms=append_time_ms)


def partition_to_bytes(state: PartitionState) -> bytes:
    """Encode a partition's state without its deletion; empty if nothing is known."""
    message = pb.PartitionState()
    for family in PARTITION_FAMILIES:
        family.save(state, message)
    return message.SerializeToString()


def lineage_from_bytes(value: bytes) -> Lineage:
    """Decode only the lineage of a partition's state. Raises CorruptError."""
    return lineage_from_messages(list(_state_message(value).lineage))


def partition_from_bytes(value: bytes) -> PartitionState:
    """Decode a partition's state. Raises CorruptError."""
    message = _state_message(value)
    fields: dict[str, Any] = {}
    for family in PARTITION_FAMILIES:
        family.load(message, fields)
    return PartitionState(**fields)


def _state_message(value: bytes) -> pb.PartitionState:
    try:
        return pb.PartitionState.FromString(value)
    except DecodeError as error:
        raise CorruptError("a cached partition state is invalid: it is not protobuf") from error


def deletion_to_bytes(deletion: RemotePartitionDeleteState) -> bytes:
    """Encode the state of a partition's deletion."""
    return bytes((deletion.value,))


def deletion_from_bytes(value: bytes | None) -> RemotePartitionDeleteState | None:
    """Decode the state of a partition's deletion; return None if the deletion has not begun."""
    return None if value is None else RemotePartitionDeleteState(value[0])


def newer_record_to_bytes(needs_fold_version: int, record: TopicRecord) -> bytes:
    """Encode the note of a record that cannot be folded.

    `needs_fold_version` is 0 if newer rules cannot fold the record either.
    """
    return _NEWER.pack(needs_fold_version, record.partition, record.offset)


def newer_record_from_bytes(value: bytes) -> NewerRecord:
    """Decode a note that `newer_record_to_bytes` encoded."""
    needs_fold_version, partition, offset = _NEWER.unpack(value)
    position = MetadataPosition(partition=partition, offset=offset)
    return NewerRecord(needs_fold_version=needs_fold_version, position=position)


def segment_metadata(entry: SegmentEntry) -> RemoteLogSegmentMetadata:
    """Return the metadata of an entry, which must have a state. Raises CorruptError."""
    return metadata_in(entry.value)


def metadata_in(value: bytes, known: TopicIdPartition | None = None) -> RemoteLogSegmentMetadata:
    """Return the metadata in a segment record's value; `known` is the partition, if known.

    Raises CorruptError. The result decodes its fields on demand without checks, because the fold
    has checked each value in the cache.
    """
    return metadata_on_demand(parse_value(value).segment.metadata, known)


class NamedObjects(NamedTuple):
    """Represents the names of a segment's objects, and fields that determine those names."""

    topic: str
    base_offset: int
    names: tuple[str, ...]


def objects_named(value: bytes) -> NamedObjects:
    """Return the object names in a segment record's value; decode little else.

    Raises CorruptError.
    """
    metadata = parse_value(value).segment.metadata
    return NamedObjects(
        topic=metadata.topic_id_partition.topic,
        base_offset=metadata.start_offset,
        names=decode_keys(metadata),
    )


def segment_record(entry: SegmentEntry) -> SegmentRecord:
    """Return the SPI's record of an entry, which must have a state. Raises CorruptError."""
    return SegmentRecord(
        metadata=segment_metadata(entry),
        copy_deadline_ms=entry.copy_deadline_ms,
        changed_ms=entry.changed_ms,
        is_dead_lettered=entry.is_dead_lettered,
        changed_at=MetadataPosition(
            partition=entry.metadata_partition, offset=entry.metadata_offset
        ),
    )
