"""One question for the topic's ends, shared by all who may share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue

import pytest

from rlmm.shared_ends import SharedEnds
from rsm.segment.errors import RetriableError
from tests.services.waiting import wait_until

_LONG_MS = 10_000


class _Topic:
    """Answers when it is told to; each question is a sequence of partitions."""

    def __init__(self) -> None:
        self.asked: list[Sequence[int]] = []
        self.answers: Queue[Mapping[int, int] | Exception] = Queue()

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        self.asked.append(partitions)
        answer = self.answers.get(timeout=10)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_ends_when_asked_while_a_question_is_under_way_then_the_next_one_is_for_all() -> None:
    """R15: an answer to a question that was put before proves nothing to who came later."""
    topic = _Topic()
    ends = SharedEnds(topic.end_offsets)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ends.of, [1], _LONG_MS)
        wait_until(lambda: topic.asked == [[1]])
        later = [pool.submit(ends.of, [number], _LONG_MS) for number in (1, 2, 3)]
        wait_until(lambda: ends._open is not None and ends._open.partitions == {1, 2, 3})
        topic.answers.put({1: 10})
        topic.answers.put({1: 11, 2: 20, 3: 30})
        found = [each.result(10) for each in (first, *later)]

    assert topic.asked == [[1], [1, 2, 3]]
    assert found == [{1: 10}, *[{1: 11, 2: 20, 3: 30}] * 3]
    ends.close()


def test_ends_when_not_told_in_time_then_is_retriable() -> None:
    topic = _Topic()
    ends = SharedEnds(topic.end_offsets)

    with pytest.raises(RetriableError, match="in time"):
        ends.of([1], 1)

    topic.answers.put({1: 10})
    ends.close()


def test_ends_when_the_question_fails_then_all_are_told_and_the_next_is_put_anew() -> None:
    topic = _Topic()
    ends = SharedEnds(topic.end_offsets)
    topic.answers.put(RetriableError("cut"))
    with pytest.raises(RetriableError, match="cut"):
        ends.of([1], _LONG_MS)
    topic.answers.put({1: 10})

    assert ends.of([1], _LONG_MS) == {1: 10}
    ends.close()


def test_ends_when_closed_then_nobody_waits() -> None:
    topic = _Topic()
    ends = SharedEnds(topic.end_offsets)
    with ThreadPoolExecutor(2) as pool:
        first: Future[Mapping[int, int]] = pool.submit(ends.of, [1], _LONG_MS)
        wait_until(lambda: topic.asked == [[1]])
        second = pool.submit(ends.of, [2], _LONG_MS)
        wait_until(lambda: ends._open is not None)
        ends.close()
        with pytest.raises(RetriableError):
            second.result(10)
        topic.answers.put({1: 10})
        assert first.result(10) == {1: 10}

    with pytest.raises(RetriableError):
        ends.of([1], _LONG_MS)
