"""Converts the records of the dead-letter topic to JSON."""

from __future__ import annotations

from collections.abc import Iterable

from rlmm.dead_letters import dead_letter, orphan_dead_letter
from rlmm.positions import TopicRecord
from tests.released_states.metadata_answers import Json


def dead_letter_answers(records: Iterable[TopicRecord]) -> list[Json]:
    """Return the dead letters of any kind as JSON, in order."""
    return [_letter(record.key, record.value or b"") for record in records]


def reencoded(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return a dead letter as this version writes it."""
    if key.startswith(orphan_dead_letter.KEY_PREFIX):
        record = orphan_dead_letter.encode(orphan_dead_letter.decode(value))
    else:
        record = dead_letter.encode(dead_letter.decode(value))
    return record.key, record.value


def _letter(key: bytes, value: bytes) -> Json:
    if key.startswith(orphan_dead_letter.KEY_PREFIX):
        return _orphan(orphan_dead_letter.decode(value))
    return _segment(dead_letter.decode(value))


def _segment(item: dead_letter.DeadLetter) -> Json:
    started = item.delete_started
    return {
        "segment": str(item.metadata.segment_id.id),
        "partition": str(item.metadata.topic_id_partition),
        "state": item.metadata.state.name,
        "object_keys": list(item.object_keys),
        "reason": item.reason,
        "attempts": item.attempts,
        "repair_attempts": item.repair_attempts,
        "first_attempt_ms": item.first_attempt_ms,
        "last_attempt_ms": item.last_attempt_ms,
        "delete_started": None if started is None else list(started),
        "metadata_topic_id": item.metadata_topic_id,
    }


def _orphan(item: orphan_dead_letter.OrphanDeadLetter) -> Json:
    return {
        "object_key": item.object_key,
        "length_bytes": item.length_bytes,
        "last_modified_ms": item.last_modified_ms,
        "first_seen_ms": item.first_seen_ms,
        "last_seen_ms": item.last_seen_ms,
        "treatment": item.treatment.name,
        "read_to": list(item.read_to),
        "metadata_topic_id": item.metadata_topic_id,
        "reason": item.reason,
        "attempts": item.attempts,
        "last_attempt_ms": item.last_attempt_ms,
    }
