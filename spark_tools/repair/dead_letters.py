"""Handles both kinds of dead letters alike: about failed deletions, and about orphans. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from rlmm.codec import EncodedRecord
from rlmm.dead_letters import dead_letter, orphan_dead_letter
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter
from rlmm.record_keys import segment_subject
from rsm.layout.keys import ObjectKeys, segment_prefix
from rsm.segment.errors import CorruptError, UnsupportedError

DEAD_LETTER_MAX_BYTES = 900_000
"""The maximum size of a record's key and value together; a dead letter takes about 1 KiB.

With a reason added, such a record still fits the default limits of topics and producers (1 MB).
"""

AnyDeadLetter = DeadLetter | OrphanDeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableDeadLetter:
    """Represents the reason why a dead letter is unreadable.

    `is_newer` is True if a newer version of the job may be able to read the dead letter.
    """

    reason: str
    is_newer: bool


def read_dead_letter(key: bytes | None, value: bytes) -> AnyDeadLetter | UnreadableDeadLetter:
    """Decode a dead letter; return why it is unreadable if decoding fails.

    An unreadable dead letter is corrupt, too large, or of a newer version or kind.
    """
    size_bytes = len(key or b"") + len(value)
    if size_bytes > DEAD_LETTER_MAX_BYTES:
        return UnreadableDeadLetter(
            reason="cannot be read: the record is larger than a dead letter can be "
            f"(bytes={size_bytes}, max={DEAD_LETTER_MAX_BYTES})",
            is_newer=False,
        )
    try:
        return _decode(value)
    except (CorruptError, UnsupportedError, ValueError) as error:
        is_newer = isinstance(error, UnsupportedError)
        return UnreadableDeadLetter(reason=f"cannot be read: {error}", is_newer=is_newer)


def _decode(value: bytes) -> AnyDeadLetter:
    try:
        return dead_letter.decode(value)
    except UnsupportedError:
        return orphan_dead_letter.decode(value)


def write_dead_letter(item: AnyDeadLetter) -> EncodedRecord:
    """Encode a record of the dead-letter topic."""
    if isinstance(item, OrphanDeadLetter):
        return orphan_dead_letter.encode(item)
    return dead_letter.encode(item)


def repair_attempts(item: AnyDeadLetter) -> int:
    """Return the number of the job's failed attempts; `attempts` may include the managers'."""
    return item.attempts if isinstance(item, OrphanDeadLetter) else item.repair_attempts


def with_failed_attempt(item: AnyDeadLetter, failure: str, now_ms: int) -> AnyDeadLetter:
    """Return the dead letter after one more failed attempt of the job."""
    again = replace(item, attempts=item.attempts + 1, reason=failure, last_attempt_ms=now_ms)
    if isinstance(again, OrphanDeadLetter):
        return again
    return replace(again, repair_attempts=again.repair_attempts + 1)


def foreign_object_reason(item: DeadLetter, keys: ObjectKeys, listed: Collection[str]) -> str:
    """Return why a dead letter may name foreign objects; empty if all belong to its segment.

    Most names contain the segment's id. Any other name, such as one below another prefix, must be
    in `listed`: names of the segment's objects in the metadata.
    """
    metadata = item.metadata
    own = segment_prefix(
        keys.partition_prefix(metadata.topic_id_partition),
        metadata.offsets.start_offset,
        metadata.segment_id.id,
    )
    for stored in metadata.objects:
        if stored.key.startswith(own):
            continue  # Nearly all names begin with it, and parsing is slow.
        name = keys.parse(stored.key)
        if name is None:
            if stored.key not in listed:
                return f"the dead letter names an object of an unknown segment: {stored.key}"
        elif segment_subject(name.segment_id) != segment_subject(metadata.segment_id):
            return f"the dead letter names an object of another segment: {stored.key}"
    return ""


def subject_of(item: AnyDeadLetter) -> str:
    """Return the subject of a dead letter: the segment's id, or the object's name."""
    if isinstance(item, OrphanDeadLetter):
        return item.object_key
    return str(item.metadata.segment_id)
