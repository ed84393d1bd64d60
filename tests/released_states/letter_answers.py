"""What the records of the dead-letter topic say, as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from rlmm.dead_letters import dead_letter, orphan_letter
from rlmm.positions import TopicRecord
from tests.released_states.metadata_answers import Json


def letter_answers(records: Iterable[TopicRecord]) -> list[Json]:
    """Each letter in order, whatever it is about."""
    return [_letter(record.key, record.value or b"") for record in records]


def reencoded(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A letter written again by this version."""
    if key.startswith(orphan_letter.KEY_PREFIX):
        record = orphan_letter.encode(orphan_letter.decode(value))
    else:
        record = dead_letter.encode(dead_letter.decode(value))
    return record.key, record.value


def _letter(key: bytes, value: bytes) -> Json:
    if key.startswith(orphan_letter.KEY_PREFIX):
        return _orphan(orphan_letter.decode(value))
    return _segment(dead_letter.decode(value))


def _segment(letter: dead_letter.DeadLetter) -> Json:
    started = letter.delete_started
    return {
        "segment": str(letter.metadata.segment_id.id),
        "partition": str(letter.metadata.topic_id_partition),
        "state": letter.metadata.state.name,
        "object_keys": list(letter.object_keys),
        "reason": letter.reason,
        "attempts": letter.attempts,
        "repair_attempts": letter.repair_attempts,
        "first_attempt_ms": letter.first_attempt_ms,
        "last_attempt_ms": letter.last_attempt_ms,
        "delete_started": None if started is None else list(started),
        "metadata_topic_id": letter.metadata_topic_id,
    }


def _orphan(letter: orphan_letter.OrphanLetter) -> Json:
    return {
        "object_key": letter.object_key,
        "length_bytes": letter.length_bytes,
        "last_modified_ms": letter.last_modified_ms,
        "first_seen_ms": letter.first_seen_ms,
        "last_seen_ms": letter.last_seen_ms,
        "treatment": letter.treatment.name,
        "read_to": list(letter.read_to),
        "metadata_topic_id": letter.metadata_topic_id,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "last_attempt_ms": letter.last_attempt_ms,
    }
