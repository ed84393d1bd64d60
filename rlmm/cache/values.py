"""Values of the cache's small tables as bytes, and entries as what the SPI answers with."""

from __future__ import annotations

from struct import Struct
from uuid import UUID

from google.protobuf.message import DecodeError

from rlmm import codec
from rlmm.events import ProcessRegistered, TopicPolicyChanged
from rlmm.positions import ReadPosition, TopicIdentity
from rlmm.proto import cache_pb2 as pb
from rlmm.proto import events_pb2
from rlmm.record_keys import policy_key, registration_key
from rlmm.segment_entry import SegmentEntry
from rlmm.spi import MetadataPosition, PartitionState, Registration, SegmentRecord
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.metadata_codec import (
    lineage_from_messages,
    lineage_to_messages,
    metadata_from_message,
    writer_from_message,
    writer_to_message,
)

SCHEMA_VERSION = 2
"""Raised with every change of a layout: a cache of another version is rebuilt."""

_POSITION = Struct(">qiq")
_HEARTBEAT = Struct(">q")


def identity_to_bytes(identity: TopicIdentity) -> bytes:
    """Write which topic a cache was folded from, and by which schema."""
    return pb.CacheIdentity(
        schema_version=SCHEMA_VERSION,
        cluster_id=identity.cluster_id,
        topic_id=identity.topic_id,
        partition_count=identity.partition_count,
    ).SerializeToString()


def identity_from_bytes(value: bytes) -> TopicIdentity | None:
    """Read it; None if the cache has another schema."""
    try:
        message = pb.CacheIdentity.FromString(value)
    except DecodeError:
        return None
    if message.schema_version != SCHEMA_VERSION:
        return None
    return TopicIdentity(
        cluster_id=message.cluster_id,
        topic_id=message.topic_id,
        partition_count=message.partition_count,
    )


def position_to_bytes(position: ReadPosition) -> bytes:
    """Write how far a metadata partition was read."""
    return _POSITION.pack(position.offset, position.leader_epoch, position.append_time_ms)


def position_from_bytes(value: bytes) -> ReadPosition:
    """Read it."""
    offset, leader_epoch, append_time_ms = _POSITION.unpack(value)
    return ReadPosition(offset=offset, leader_epoch=leader_epoch, append_time_ms=append_time_ms)


def partition_to_bytes(state: PartitionState) -> bytes:
    """Write a partition's state."""
    return pb.PartitionState(
        owner=None if state.owner is None else writer_to_message(state.owner),
        lineage=lineage_to_messages(state.lineage),
        log_start_offset=state.log_start_offset,
        trimmed_offset=state.trimmed_offset,
        log_start_requested_offset=state.log_start_requested_offset,
    ).SerializeToString()


def partition_from_bytes(value: bytes) -> PartitionState:
    """Read it. CorruptError."""
    try:
        message = pb.PartitionState.FromString(value)
    except DecodeError as error:
        raise CorruptError("not a partition's state") from error
    return PartitionState(
        owner=writer_from_message(message.owner) if message.HasField("owner") else None,
        lineage=lineage_from_messages(list(message.lineage)),
        log_start_offset=message.log_start_offset if message.HasField("log_start_offset") else None,
        trimmed_offset=message.trimmed_offset if message.HasField("trimmed_offset") else None,
        log_start_requested_offset=(
            message.log_start_requested_offset
            if message.HasField("log_start_requested_offset")
            else None
        ),
    )


def policy_from_bytes(topic_id: bytes, value: bytes) -> TopicPolicyChanged:
    """Read a policy's record value."""
    event = codec.decode(policy_key(UUID(bytes=topic_id)), value)
    assert isinstance(event, TopicPolicyChanged), "a policy stands under a policy's key"
    return event


def registration_to_bytes(registration: Registration) -> bytes:
    """Write a registration."""
    value = codec.encode(registration.process).value
    return _HEARTBEAT.pack(registration.heartbeat_ms) + value


def registration_from_bytes(process_id: bytes, value: bytes) -> Registration:
    """Read it."""
    (heartbeat_ms,) = _HEARTBEAT.unpack_from(value)
    event = codec.decode(registration_key(UUID(bytes=process_id)), value[_HEARTBEAT.size :])
    assert isinstance(event, ProcessRegistered), "a process stands under a process's key"
    return Registration(process=event, heartbeat_ms=heartbeat_ms)


def segment_metadata(entry: SegmentEntry) -> RemoteLogSegmentMetadata:
    """A segment's metadata. CorruptError. The entry must have a state."""
    try:
        message = events_pb2.MetadataEvent.FromString(entry.value)
    except DecodeError as error:
        raise CorruptError("not a metadata event") from error
    return metadata_from_message(message.segment.metadata)


def segment_record(entry: SegmentEntry) -> SegmentRecord:
    """A segment as the SPI shows it. CorruptError. The entry must have a state."""
    return SegmentRecord(
        metadata=segment_metadata(entry),
        copy_deadline_ms=entry.copy_deadline_ms,
        changed_ms=entry.changed_ms,
        dead_lettered=entry.dead_lettered,
        changed_at=MetadataPosition(
            partition=entry.metadata_partition, offset=entry.metadata_offset
        ),
    )
