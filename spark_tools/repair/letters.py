"""The two kinds of letters as one: failed deletions of segments, and orphans. Pure."""

from __future__ import annotations

from rlmm import dead_letter, orphan_letter
from rlmm.codec import EncodedRecord
from rlmm.dead_letter import DeadLetter
from rlmm.orphan_letter import OrphanLetter
from rsm.segment.errors import CorruptError, UnsupportedError

Letter = DeadLetter | OrphanLetter


def read_letter(value: bytes) -> Letter | str:
    """The letter, or why it can't be read: broken, or of a newer version or kind."""
    try:
        return _decode(value)
    except (CorruptError, UnsupportedError, ValueError) as error:
        return f"can't be read: {error}"


def _decode(value: bytes) -> Letter:
    try:
        return dead_letter.decode(value)
    except UnsupportedError:
        return orphan_letter.decode(value)


def write_letter(letter: Letter) -> EncodedRecord:
    """A record of the letter topic."""
    if isinstance(letter, OrphanLetter):
        return orphan_letter.encode(letter)
    return dead_letter.encode(letter)


def subject_of(letter: Letter) -> str:
    """What it is about: a segment's id, or an object's name. One letter per subject counts."""
    if isinstance(letter, OrphanLetter):
        return letter.object_key
    return str(letter.metadata.segment_id)
