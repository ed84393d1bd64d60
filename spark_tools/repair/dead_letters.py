"""The two kinds of letters as one: failed deletions of segments, and orphans. Pure."""

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
"""Key and value of a record: a larger one is no letter, which has a KiB or so.

With a reason and what Kafka adds it fits into topics and producers by their defaults (1 MB).
"""

AnyDeadLetter = DeadLetter | OrphanDeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableDeadLetter:
    """Why a letter cannot be read. `is_newer`: a newer version of the job can."""

    reason: str
    is_newer: bool


def read_dead_letter(key: bytes | None, value: bytes) -> AnyDeadLetter | UnreadableDeadLetter:
    """The letter, or why it cannot be read: broken, too large, or of a newer version or kind."""
    size_bytes = len(key or b"") + len(value)
    if size_bytes > DEAD_LETTER_MAX_BYTES:
        return UnreadableDeadLetter(
            reason=f"cannot be read: {size_bytes} bytes are no dead letter", is_newer=False
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
    """A record of the letter topic."""
    if isinstance(item, OrphanDeadLetter):
        return orphan_dead_letter.encode(item)
    return dead_letter.encode(item)


def repair_attempts(item: AnyDeadLetter) -> int:
    """How often the repair job has failed; managers count theirs in the same letters."""
    return item.attempts if isinstance(item, OrphanDeadLetter) else item.repair_attempts


def tried_again(item: AnyDeadLetter, failure: str, now_ms: int) -> AnyDeadLetter:
    """The letter after one more attempt of the repair job that failed."""
    again = replace(item, attempts=item.attempts + 1, reason=failure, last_attempt_ms=now_ms)
    if isinstance(again, OrphanDeadLetter):
        return again
    return replace(again, repair_attempts=again.repair_attempts + 1)


def why_not_its_own(item: DeadLetter, keys: ObjectKeys, listed: Collection[str]) -> str:
    """What a letter names that is not shown to be its segment's; empty if there is nothing.

    A name says whose it is, if it is one of `keys`. One that says nothing, as below another prefix,
    must be in `listed`: what the metadata has of the segment.
    """
    metadata = item.metadata
    own = segment_prefix(
        keys.partition_prefix(metadata.topic_id_partition),
        metadata.offsets.start_offset,
        metadata.segment_id.id,
    )
    for stored in metadata.objects:
        if stored.key.startswith(own):
            continue  # nearly all; names are slow to take apart
        name = keys.parse(stored.key)
        if name is None:
            if stored.key not in listed:
                return f"the letter names an object that may be anybody's: {stored.key}"
        elif segment_subject(name.segment_id) != segment_subject(metadata.segment_id):
            return f"the letter names an object of another segment: {stored.key}"
    return ""


def subject_of(item: AnyDeadLetter) -> str:
    """What it is about: a segment's id, or an object's name. One letter per subject counts."""
    if isinstance(item, OrphanDeadLetter):
        return item.object_key
    return str(item.metadata.segment_id)
