"""Encodes and decodes dead letters about segments that could not be deleted. Pure.

A dead letter contains all data for a repair without the metadata topic: the segment, the
objects that may still exist, and the position of the accepted DELETE_SEGMENT_STARTED. A reader must
read past that position before it concludes that the metadata no longer contains the segment. The
key is the segment's subject (rlmm/record_keys.py). So a later dead letter about the segment
supersedes an earlier one. Dead letters about segments with chunks have a separate version, because
older readers would delete only the segment's other objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from rlmm.codec import EncodedRecord
from rlmm.events.registry import SEGMENTS
from rlmm.positions import MetadataPosition
from rlmm.proto import dead_letter_pb2 as pb
from rlmm.proto import events_pb2 as events_pb
from rlmm.record_keys import segment_key, segment_subject
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.metadata_codec import metadata_from_message, metadata_to_message
from rsm.segment.proto import segment_pb2 as segment_pb

_FORMAT_VERSION = 1
_CHUNKS_FORMAT_VERSION = 3  # Version 2 is for orphans.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """Represents a deletion that failed `attempts` times, `repair_attempts` of them in repairs.

    Times are wall-clock times. `delete_started` is the position of the accepted
    DELETE_SEGMENT_STARTED; None if it is unknown. `metadata_topic_id` is the id of that position's
    topic; empty if it is unknown.
    """

    metadata: RemoteLogSegmentMetadata
    reason: str
    attempts: int
    first_attempt_ms: int
    last_attempt_ms: int
    delete_started: MetadataPosition | None = None
    metadata_topic_id: str = ""
    repair_attempts: int = 0

    @property
    def object_keys(self) -> tuple[str, ...]:
        """Return the keys of the objects that may still be in the store."""
        return self.metadata.object_keys


def encode(dead_letter: DeadLetter) -> EncodedRecord:
    """Encode a dead letter as a record of the dead-letter topic."""
    position = dead_letter.delete_started
    metadata = metadata_to_message(dead_letter.metadata)
    has_chunks = metadata.HasField("chunks")
    message = pb.DeadLetter(
        min_fold_version=_CHUNKS_FORMAT_VERSION if has_chunks else _FORMAT_VERSION,
        metadata=metadata,
        object_keys=[each.key for each in metadata.objects],
        reason=dead_letter.reason,
        attempts=dead_letter.attempts,
        first_attempt_ms=dead_letter.first_attempt_ms,
        last_attempt_ms=dead_letter.last_attempt_ms,
        metadata_partition=None if position is None else position.partition,
        metadata_offset=None if position is None else position.offset,
        metadata_topic_id=dead_letter.metadata_topic_id,
        repair_attempts=dead_letter.repair_attempts,
    )
    key = segment_subject(dead_letter.metadata.segment_id)
    return EncodedRecord(key=key, value=message.SerializeToString())


def end_of_deletion(
    dead_letter: DeadLetter, value: bytes, *, event_id: UUID, event_timestamp_ms: int
) -> EncodedRecord:
    """Return the record that moves a dead letter's segment to DELETE_SEGMENT_FINISHED.

    `value` is the encoded dead letter. Copying the metadata from it is faster than encoding.
    """
    event = events_pb.MetadataEvent(event_id=event_id.bytes)
    metadata = event.segment.metadata
    metadata.CopyFrom(pb.DeadLetter.FromString(value).metadata)
    metadata.state = segment_pb.DELETE_SEGMENT_FINISHED
    metadata.event_timestamp_ms = event_timestamp_ms
    event.min_fold_version = SEGMENTS.needed_fold_version(event.segment)
    key = segment_key(dead_letter.metadata.segment_id, event_id)
    return EncodedRecord(key=key, value=event.SerializeToString())


def topic_configs(replication_factor: int) -> Mapping[str, str]:
    """Return the configs for creating a dead-letter topic, whose records never expire."""
    return {
        "cleanup.policy": "delete",
        "min.insync.replicas": str(min(2, replication_factor)),
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }


def decode(value: bytes) -> DeadLetter:
    """Decode a dead letter about a segment.

    Raises CorruptError if `value` is invalid. Raises UnsupportedError if the dead letter has a
    newer version or is about an orphan.
    """
    try:
        message = pb.DeadLetter.FromString(value)
    except DecodeError as error:
        raise CorruptError(
            "cannot decode the record: it is not a dead letter", length_bytes=len(value)
        ) from error
    if message.HasField("orphan") or message.min_fold_version > _CHUNKS_FORMAT_VERSION:
        raise UnsupportedError(
            "cannot decode the dead letter: it has a newer version or is about an orphan",
            needs=message.min_fold_version,
        )
    known = message.HasField("metadata_partition") and message.HasField("metadata_offset")
    return DeadLetter(
        metadata=metadata_from_message(message.metadata),
        reason=message.reason,
        attempts=message.attempts,
        first_attempt_ms=message.first_attempt_ms,
        last_attempt_ms=message.last_attempt_ms,
        delete_started=MetadataPosition(
            partition=message.metadata_partition, offset=message.metadata_offset
        )
        if known
        else None,
        metadata_topic_id=message.metadata_topic_id,
        repair_attempts=message.repair_attempts,
    )
