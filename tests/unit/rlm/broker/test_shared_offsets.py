"""Offsets that several callers need at once: one request, sent after all of them asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Lock

import pytest

from rlm.broker.partition_results import PartitionResults
from rlm.broker.shared_offsets import SharedOffsets
from rlm.facts.partition_offsets import PartitionOffsets
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.log_dir_builder import topic_id_partition
from tests.services.waiting import wait_until

Epochs = Mapping[TopicIdPartition, int]
Offsets = PartitionResults[PartitionOffsets]

FIRST = topic_id_partition()
TIPS = [replace(FIRST, partition=number) for number in range(6)]


class Line:
    """A connection that blocks one request at a time, until the test calls `release`."""

    def __init__(self) -> None:
        self.asked: list[dict[TopicIdPartition, int]] = []
        self.error: Exception | None = None
        self._go = Event()
        self._lock = Lock()

    def release(self) -> None:
        self._go.set()

    def put(self, take: Callable[[], Epochs]) -> Offsets:
        with self._lock:
            epochs = dict(take())
            self.asked.append(epochs)
            assert self._go.wait(30)
            if self.error is not None:
                raise self.error
            return PartitionResults(
                succeeded={tip: offsets(tip, epoch) for tip, epoch in epochs.items() if epoch < 9},
                failed={tip: FencedError("gone") for tip, epoch in epochs.items() if epoch >= 9},
            )


def offsets(tip: TopicIdPartition, epoch: int) -> PartitionOffsets:
    end = 100 * tip.partition + epoch
    return PartitionOffsets(log_start_offset=0, last_stable_offset=end, high_watermark=end)


class Noticed(Mapping[TopicIdPartition, int]):
    """Sets `seen` when its epochs are read, which happens as its caller joins a request."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self.seen = Event()

    def __getitem__(self, tip: TopicIdPartition) -> int:
        return self._epochs[tip]

    def __iter__(self) -> Iterator[TopicIdPartition]:
        self.seen.set()
        return iter(self._epochs)

    def __len__(self) -> int:
        return len(self._epochs)


def ask_at_once(line: Line, *asked: Epochs) -> list[Future[Offsets]]:
    """Request offsets; release the first request only when all others wait for the next one."""
    shared = SharedOffsets(line.put)
    with ThreadPoolExecutor(len(asked)) as pool:
        futures = [pool.submit(shared.of, asked[0])]
        wait_until(lambda: len(line.asked) == 1, describe="the first is under way")
        for epochs in map(Noticed, asked[1:]):
            futures.append(pool.submit(shared.of, epochs))
            assert epochs.seen.wait(30)
        line.release()
    return futures


def test_offsets_when_asked_during_a_question_then_all_share_the_next() -> None:
    line = Line()

    futures = ask_at_once(line, {TIPS[0]: 1}, {TIPS[1]: 1}, {TIPS[2]: 1}, {TIPS[3]: 1})

    assert line.asked == [{TIPS[0]: 1}, {TIPS[1]: 1, TIPS[2]: 1, TIPS[3]: 1}]
    found = [dict(future.result().succeeded) for future in futures]
    assert found == [{tip: offsets(tip, 1)} for tip in TIPS[:4]]


def test_offsets_when_the_same_is_asked_during_a_question_then_asked_again() -> None:
    """R21: a caller that has read the last byte must not get offsets from before that read."""
    line = Line()

    ask_at_once(line, {FIRST: 1}, {FIRST: 1})

    assert line.asked == [{FIRST: 1}, {FIRST: 1}]


def test_offsets_when_one_believes_in_another_epoch_then_each_gets_its_own() -> None:
    """R1: the broker checks the epoch of each caller."""
    line = Line()

    futures = ask_at_once(line, {TIPS[1]: 1}, {FIRST: 9}, {FIRST: 1})

    *_, old, new = futures
    assert isinstance(old.result().failed[FIRST], FencedError)
    assert new.result().succeeded == {FIRST: offsets(FIRST, 1)}


def test_offsets_when_the_request_fails_then_all_who_share_it_get_the_error() -> None:
    line = Line()
    line.error = RetriableError("broker away")

    futures = ask_at_once(line, {TIPS[0]: 1}, {TIPS[1]: 1}, {TIPS[2]: 1})

    for future in futures:
        with pytest.raises(RetriableError, match="broker away"):
            future.result()


def test_offsets_when_a_question_failed_then_the_next_is_put_all_the_same() -> None:
    line = Line()
    line.release()
    shared = SharedOffsets(line.put)
    line.error = RetriableError("broker away")
    with pytest.raises(RetriableError):
        shared.of({FIRST: 1})
    line.error = None

    assert shared.of({FIRST: 1}).succeeded == {FIRST: offsets(FIRST, 1)}
