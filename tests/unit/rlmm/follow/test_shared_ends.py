"""One request for the topic's ends, shared by all callers that may share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event

import pytest

from rlmm.follow.shared_ends import SharedEnds
from rsm.segment.errors import RetriableError
from tests.services.waiting import wait_until

_LONG_MS = 10_000


class _Topic:
    """A topic that answers when the test allows it; each question is a sequence of partitions."""

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
    """R15: the response to an earlier request proves nothing to a later caller."""
    topic = _Topic()
    ends = SharedEnds(topic.end_offsets)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ends.of, [1], _LONG_MS)
        wait_until(lambda: topic.asked == [[1]])
        later = [pool.submit(ends.of, [1], _LONG_MS) for _ in range(3)]
        wait_until(lambda: ends._waiting)
        for end in (
            10,
            11,
            11,
            11,
        ):  # the last two callers come too late even for the second request
            topic.answers.put({1: end})
        found = [each.result(10) for each in (first, *later)]

    assert len(topic.asked) < 1 + len(later)
    assert found == [{1: 10}, {1: 11}, {1: 11}, {1: 11}]
    ends.close()


def test_ends_when_one_partition_is_not_answered_then_others_do_not_wait_for_it() -> None:
    away = Event()

    def ask(partitions: Sequence[int]) -> Mapping[int, int]:
        if 1 in partitions:
            away.wait(10)
        return dict.fromkeys(partitions, 5)

    ends = SharedEnds(ask)
    with pytest.raises(RetriableError, match="in time"):
        ends.of([1, 2], 1)

    assert ends.of([2], _LONG_MS) == {2: 5}
    away.set()
    ends.close()


def test_ends_when_not_answered_in_time_then_is_retriable() -> None:
    topic = _Topic()
    ends = SharedEnds(topic.end_offsets)

    with pytest.raises(RetriableError, match="in time"):
        ends.of([1], 1)

    topic.answers.put({1: 10})
    ends.close()


def test_ends_when_the_request_fails_then_all_get_the_error_and_the_next_is_sent_again() -> None:
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
        second = pool.submit(ends.of, [1], _LONG_MS)
        wait_until(lambda: ends._waiting)
        ends.close()
        with pytest.raises(RetriableError):
            second.result(10)
        topic.answers.put({1: 10})
        assert first.result(10) == {1: 10}

    with pytest.raises(RetriableError):
        ends.of([1], _LONG_MS)
