from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import pytest

from bench.consumer import ConsumeRun
from bench.gateway.throughput import (
    LARGE_FETCHES,
    WARM_UPS,
    Readers,
    Readings,
    Way,
    overlapping_pieces,
)
from bench.measurement import at_least
from rsm.segment.ranges import OffsetRange


def _readings(title: str, *mb_per_s: float) -> Readings:
    way = Way(title=title, fetches=LARGE_FETCHES, address="", topic="", pieces=(), processes={})
    cpu_s_per_gb = {"gateway": tuple(1 / speed for speed in mb_per_s)}
    return Readings(way=way, mb_per_s=mb_per_s, cpu_s_per_gb=cpu_s_per_gb)


def test_ratio_when_runs_differ_then_each_is_held_against_the_peer_of_its_round() -> None:
    ratio = _readings("own", 50.0, 400.0, 90.0).ratio(
        _readings("theirs", 100.0, 200.0, 100.0), "own ÷ theirs", goal=at_least(1)
    )

    assert ratio.runs == (0.5, 2.0, 0.9)
    assert ratio.value == 0.9
    assert (ratio.metric, ratio.peer, ratio.goal) == (
        "own ÷ theirs, large fetches",
        "theirs, large fetches",
        at_least(1),
    )


def test_readings_when_shown_then_throughput_comes_before_its_processor_time() -> None:
    speed, cpu = _readings("own", 50.0, 100.0).measurements()

    assert (speed.metric, speed.unit, speed.value) == ("own, large fetches", "MB/s", 75.0)
    assert (cpu.metric, cpu.unit) == ("gateway CPU: own, large fetches", "s/GB")


@pytest.mark.parametrize("count", [1, 2, 8])
def test_pieces_when_several_read_then_the_first_begins_and_the_last_ends_the_log(
    count: int,
) -> None:
    length = 1000 if count == 1 else 250

    pieces = overlapping_pieces(1000, count=count, length=length)

    assert len(pieces) == count
    assert {len(piece) for piece in pieces} == {length}
    assert pieces[0].start_offset == 0
    assert 1000 - pieces[-1].end_offset < count


def test_pieces_when_one_reads_then_the_whole_log() -> None:
    assert overlapping_pieces(7, count=1, length=7) == [OffsetRange(start_offset=0, end_offset=7)]


class _Consumer(Executor):
    """Reads nothing, and ends at once; records its number and the address."""

    def __init__(self, number: int, seen: list[tuple[int, str]]) -> None:
        self._number = number
        self._seen = seen

    def submit(self, read: Any, /, *pieces: Any, **_: Any) -> Future[Any]:
        self._seen.append((self._number, read.args[0]))
        done: Future[Any] = Future()
        done.set_result(ConsumeRun(started_s=0.0, ended_s=1.0))
        return done


def _reader_of(title: str, *, pieces: int = 1) -> Way:
    return Way(
        title=title,
        fetches=LARGE_FETCHES,
        address=title,
        topic="",
        pieces=overlapping_pieces(1000, count=pieces, length=500),
        processes={},
    )


def test_ways_when_alternated_then_every_second_round_is_reversed_after_the_warm_up() -> None:
    seen: list[tuple[int, str]] = []
    readers = Readers([_Consumer(0, seen), _Consumer(1, seen)], record_bytes=1_000, runs=3)

    own, theirs = readers.alternate(_reader_of("own"), _reader_of("theirs"))

    addresses = [address for _, address in seen]
    assert addresses[: 2 * WARM_UPS] == ["own", "theirs", "theirs", "own"] * (WARM_UPS // 2)
    assert addresses[2 * WARM_UPS :] == ["own", "theirs", "theirs", "own", "own", "theirs"]
    assert (own.way.title, theirs.way.title) == ("own", "theirs")
    assert own.mb_per_s == (0.5,) * 3


def test_consumer_when_alone_then_is_always_the_same_process() -> None:
    seen: list[tuple[int, str]] = []
    readers = Readers([_Consumer(0, seen), _Consumer(1, seen)], record_bytes=1_000, runs=1)

    readers.alternate(_reader_of("both", pieces=2), runs=1)
    readers.alternate(_reader_of("alone"), runs=2)

    assert {number for number, address in seen if address == "alone"} == {0}
    assert {number for number, address in seen if address == "both"} == {0, 1}
