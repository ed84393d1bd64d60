"""Encodes and decodes dead letters about orphans: objects in the store that no record names. Pure.

They share the dead-letter topic with failed deletions, but have a separate version, so that older
readers ignore them.

**Data loss:** a dead letter does not prove that its object is an orphan. A repair that trusts it
can delete the object of a segment. The dead letter names an object seen twice, and the
position to which the metadata was read in between. A repair must check both again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from google.protobuf.message import DecodeError

from rlmm.codec import EncodedRecord
from rlmm.positions import MetadataPosition
from rlmm.proto import dead_letter_pb2 as pb
from rsm.segment.errors import CorruptError, UnsupportedError

_FORMAT_VERSION = 2
KEY_PREFIX = b"orphan:"
"""The prefix of the keys of all records about orphans."""


class OrphanTreatment(Enum):
    """Lists how a repair treats an orphan; each value is a treatment's name on command lines."""

    DELETE = "delete"
    QUARANTINE = "quarantine"
    """Moves the object to the quarantine, from which no segment is read."""


_TREATMENTS = {
    OrphanTreatment.DELETE: pb.ORPHAN_DELETE,
    OrphanTreatment.QUARANTINE: pb.ORPHAN_QUARANTINE,
}
_BY_NUMBER = {number: treatment for treatment, number in _TREATMENTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanDeadLetter:
    """Represents an object that the store listed twice, at `first_seen_ms` and `last_seen_ms`.

    `last_modified_ms` is a time of the store's clock; the other times are wall-clock times.
    `last_attempt_ms` is 0 if no repair was attempted. A record naming the object would be in
    the metadata partition of `read_to`, which was read to that offset (exclusive).
    `metadata_topic_id` is the id of that partition's topic.
    """

    object_key: str
    length_bytes: int
    last_modified_ms: int
    first_seen_ms: int
    last_seen_ms: int
    treatment: OrphanTreatment
    read_to: MetadataPosition
    metadata_topic_id: str
    reason: str = ""
    attempts: int = 0
    last_attempt_ms: int = 0


def encode(dead_letter: OrphanDeadLetter) -> EncodedRecord:
    """Encode a dead letter as a record, which supersedes earlier ones about the same object."""
    message = pb.DeadLetter(
        min_fold_version=_FORMAT_VERSION,
        object_keys=[dead_letter.object_key],
        reason=dead_letter.reason,
        attempts=dead_letter.attempts,
        last_attempt_ms=dead_letter.last_attempt_ms,
        metadata_partition=dead_letter.read_to.partition,
        metadata_offset=dead_letter.read_to.offset,
        metadata_topic_id=dead_letter.metadata_topic_id,
        orphan=pb.OrphanObject(
            key=dead_letter.object_key,
            length_bytes=dead_letter.length_bytes,
            last_modified_ms=dead_letter.last_modified_ms,
            first_seen_ms=dead_letter.first_seen_ms,
            last_seen_ms=dead_letter.last_seen_ms,
            treatment=_TREATMENTS[dead_letter.treatment],
        ),
    )
    key = KEY_PREFIX + dead_letter.object_key.encode()
    return EncodedRecord(key=key, value=message.SerializeToString())


def decode(value: bytes) -> OrphanDeadLetter:
    """Decode a dead letter about an orphan.

    Raises CorruptError if `value` is invalid. Raises UnsupportedError if the dead letter has a
    newer version or another kind.
    """
    try:
        message = pb.DeadLetter.FromString(value)
    except DecodeError as error:
        raise CorruptError(
            "cannot read a dead letter: it is not protobuf", length_bytes=len(value)
        ) from error
    if message.min_fold_version > _FORMAT_VERSION:
        raise UnsupportedError(
            "cannot decode the dead letter: it has a newer version", needs=message.min_fold_version
        )
    treatment = _BY_NUMBER.get(message.orphan.treatment)
    if not message.HasField("orphan") or treatment is None:
        raise UnsupportedError("cannot decode the record: it is not a dead letter about an orphan")
    orphan = message.orphan
    return OrphanDeadLetter(
        object_key=orphan.key,
        length_bytes=orphan.length_bytes,
        last_modified_ms=orphan.last_modified_ms,
        first_seen_ms=orphan.first_seen_ms,
        last_seen_ms=orphan.last_seen_ms,
        treatment=treatment,
        read_to=MetadataPosition(
            partition=message.metadata_partition, offset=message.metadata_offset
        ),
        metadata_topic_id=message.metadata_topic_id,
        reason=message.reason,
        attempts=message.attempts,
        last_attempt_ms=message.last_attempt_ms,
    )
