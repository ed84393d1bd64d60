"""Reads the newest dead letter of each segment from the dead-letter topic, to its current end.

rlm.policy.request.dead_letters decides by the metadata which deletions have finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlmm.consumer import TopicReader
from rlmm.dead_letters.dead_letter import DeadLetter, decode
from rlmm.dead_letters.orphan_dead_letter import KEY_PREFIX as ORPHAN_KEY_PREFIX
from rlmm.positions import ReadPosition
from rsm.segment.clock import Clock
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError, UnsupportedError

_POLL_MS = 500
_MAX_RECORDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Represents each segment's newest dead letter, unordered, and counts unreadable records."""

    dead_letters: tuple[DeadLetter, ...]
    unreadable_count: int


def read_dead_letters(reader: TopicReader, clock: Clock, *, timeout_ms: int) -> DeadLetters:
    """Read all segments' dead letters up to the current end.

    Returns no dead letters if the topic does not exist. Memory: one dead letter for each segment
    in the topic. Raises RetriableError if the read does not reach the end in time.
    """
    deadline_ms = clock.monotonic_ms() + timeout_ms
    try:
        partitions = reader.partitions(timeout_ms)
    except NotFoundError:
        return DeadLetters(dead_letters=(), unreadable_count=0)
    ends = reader.end_offsets(partitions, timeout_ms)
    start = ReadPosition(offset=0, leader_epoch=-1, append_time_ms=0)
    reader.assign({partition: start for partition, end in ends.items() if end > 0})
    newest: dict[UUID, DeadLetter] = {}
    unreadable_count = 0
    while any(reader.positions().get(each, end) < end for each, end in ends.items()):
        if clock.monotonic_ms() >= deadline_ms:
            raise RetriableError(
                "cannot read all dead letters in time",
                advice="Run the command again, with a longer --timeout",
            )
        for record in reader.poll(max_records=_MAX_RECORDS, timeout_ms=_POLL_MS):
            if record.key.startswith(ORPHAN_KEY_PREFIX):
                continue  # An orphan belongs to no segment of the metadata topic.
            try:
                dead_letter = decode(record.value or b"")
                newest[dead_letter.metadata.segment_id.id] = dead_letter
            except (CorruptError, UnsupportedError):
                unreadable_count += 1
    return DeadLetters(dead_letters=tuple(newest.values()), unreadable_count=unreadable_count)
