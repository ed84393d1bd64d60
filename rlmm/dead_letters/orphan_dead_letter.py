"""Letters about orphans, objects in the store that no metadata names: values and records. Pure.

They go to the dead-letter topic beside those of failed deletions, with a version of their own: who
does not know them leaves them alone. A letter is no proof. It says which object was seen, twice,
and up to where the metadata was read in between; whoever acts on it looks at all of that again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from google.protobuf.message import DecodeError

from rlmm.codec import EncodedRecord
from rlmm.proto import dead_letter_pb2 as pb
from rlmm.spi import MetadataPosition
from rsm.segment.errors import CorruptError, UnsupportedError

_FORMAT_VERSION = 2
KEY_PREFIX = b"orphan:"
"""What the key of every record about an orphan begins with."""


class OrphanTreatment(Enum):
    """What is to become of the object; the value is its name on command lines."""

    DELETE = "delete"
    QUARANTINE = "quarantine"
    """It is moved to where nobody looks for it."""


_TREATMENTS = {
    OrphanTreatment.DELETE: pb.ORPHAN_DELETE,
    OrphanTreatment.QUARANTINE: pb.ORPHAN_QUARANTINE,
}
_BY_NUMBER = {number: treatment for treatment, number in _TREATMENTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanDeadLetter:
    """An object as the store showed it; `last_modified_ms` by the store's clock.

    The other times are wall clock: of the two sightings, and of the last attempt, 0 if there was
    none. `read_to` is the next offset of the metadata partition that would name the object, in the
    topic of `metadata_topic_id`.
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
    """Write a letter as a record; a later letter about the same object replaces it."""
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
    """Read a letter. CorruptError, or UnsupportedError for another kind or a newer version."""
    try:
        message = pb.DeadLetter.FromString(value)
    except DecodeError as error:
        raise CorruptError("not a letter", length_bytes=len(value)) from error
    if message.min_fold_version > _FORMAT_VERSION:
        raise UnsupportedError("a letter of a newer version", needs=message.min_fold_version)
    treatment = _BY_NUMBER.get(message.orphan.treatment)
    if not message.HasField("orphan") or treatment is None:
        raise UnsupportedError("not a letter about an orphan")
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
