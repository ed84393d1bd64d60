"""Reading the dead-letter topic to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rlm.broker.dead_letters.dead_letter_log import read_dead_letters
from rlmm.dead_letters.dead_letter import DeadLetter, encode
from rlmm.positions import ReadPosition, TopicRecord
from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.metadata import SegmentState
from tests.fakes.clock import FakeClock
from tests.unit.rlm.policy.views import remote

ORPHAN = b"a letter about an orphan"


class DeadLetterTopic:
    """A topic of two partitions; `missing`: it does not exist; `silent`: it returns no record."""

    def __init__(self, *values: tuple[int, bytes | None]) -> None:
        self.missing = False
        self.silent = False
        self.clock = FakeClock()
        self._values = values
        self._positions: dict[int, int] = {}

    def partitions(self, timeout_ms: int) -> Sequence[int]:
        if self.missing:
            raise NotFoundError("there is no such topic")
        return [0, 1]

    def end_offsets(self, partitions: Sequence[int], timeout_ms: int) -> Mapping[int, int]:
        return {each: sum(p == each for p, _ in self._values) for each in partitions}

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._positions = {partition: p.offset for partition, p in positions.items()}

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        self.clock.advance(timeout_ms)
        if self.silent:
            return []
        records = []
        for partition, value in self._values:
            offset = self._positions[partition]
            self._positions[partition] += 1
            records.append(
                TopicRecord(
                    partition=partition,
                    offset=offset,
                    leader_epoch=0,
                    append_time_ms=0,
                    key=b"orphan:name" if value == ORPHAN else b"key",
                    value=value,
                )
            )
        return records

    def positions(self) -> Mapping[int, int]:
        return self._positions


FIRST = DeadLetter(
    metadata=remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED).metadata,
    reason="locked",
    attempts=5,
    first_attempt_ms=0,
    last_attempt_ms=1,
)
AGAIN = replace(FIRST, attempts=9)
OTHER = replace(FIRST, metadata=remote(100, 200).metadata)


def value(dead_letter: DeadLetter) -> bytes:
    content = encode(dead_letter).value
    assert content is not None
    return content


def test_dead_letters_when_a_segment_has_several_then_the_newest_counts() -> None:
    topic = DeadLetterTopic((0, value(FIRST)), (1, value(OTHER)), (0, value(AGAIN)))

    found = read_dead_letters(topic, topic.clock, timeout_ms=10_000)

    assert set(found.dead_letters) == {AGAIN, OTHER}
    assert found.unreadable_count == 0


def test_dead_letters_when_some_are_not_letters_then_the_others_are_read() -> None:
    topic = DeadLetterTopic((0, b"\xff\xff"), (0, value(FIRST)))

    found = read_dead_letters(topic, topic.clock, timeout_ms=10_000)

    assert (found.dead_letters, found.unreadable_count) == ((FIRST,), 1)


def test_dead_letters_when_there_is_no_topic_then_none() -> None:
    topic = DeadLetterTopic()
    topic.missing = True

    assert read_dead_letters(topic, topic.clock, timeout_ms=10_000).dead_letters == ()


def test_dead_letters_when_the_end_is_not_reached_in_time_then_an_error() -> None:
    topic = DeadLetterTopic((0, value(FIRST)))
    topic.silent = True

    with pytest.raises(RetriableError):
        read_dead_letters(topic, topic.clock, timeout_ms=2_000)


def test_read_when_letters_are_about_orphans_then_they_are_left_to_who_knows_them() -> None:
    """R22: dead letters about orphans are of another kind, for `rlm-repair` only."""
    topic = DeadLetterTopic((0, encode(FIRST).value), (0, ORPHAN))

    found = read_dead_letters(topic, topic.clock, timeout_ms=10_000)

    assert (len(found.dead_letters), found.unreadable_count) == (1, 0)
