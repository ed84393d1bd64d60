"""The two kinds of letters as one: failed deletions of segments, and orphans. Pure."""

from __future__ import annotations

from rlmm import dead_letter, orphan_letter
from rlmm.codec import EncodedRecord
from rlmm.dead_letter import DeadLetter
from rlmm.orphan_letter import OrphanLetter
from rlmm.record_keys import segment_subject
from rsm.layout.keys import ObjectKeys
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.ids import id_to_text

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


def anothers_object(letter: DeadLetter, keys: ObjectKeys) -> str:
    """The first object of a letter whose name says that it is another segment's; empty if none.

    A name that says nothing, as below another prefix, is taken to be the segment's own.
    """
    metadata = letter.metadata
    partition = keys.partition_prefix(metadata.topic_id_partition)
    own = f"{partition}{metadata.offsets.start_offset:020d}-{id_to_text(metadata.segment_id.id)}."
    for stored in metadata.objects:
        if stored.key.startswith(own):
            continue  # nearly all; names are slow to take apart
        name = keys.parse(stored.key)
        if name is None:
            continue
        if segment_subject(name.segment_id) != segment_subject(metadata.segment_id):
            return stored.key
    return ""


def subject_of(letter: Letter) -> str:
    """What it is about: a segment's id, or an object's name. One letter per subject counts."""
    if isinstance(letter, OrphanLetter):
        return letter.object_key
    return str(letter.metadata.segment_id)
