from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.ranges import OffsetRange
from spark_tools.reading.admission import Backlog, TriggerLimits, admitted_ends


def backlog(start: int, *parts: tuple[int, int]) -> Backlog:
    """Return parts of (offsets, bytes), one after the other."""
    found: list[tuple[OffsetRange, int]] = []
    offset = start
    for count, size_bytes in parts:
        offsets = OffsetRange(start_offset=offset, end_offset=offset + count)
        found.append((offsets, size_bytes))
        offset += count
    return Backlog(offsets=OffsetRange(start_offset=start, end_offset=offset), parts=tuple(found))


TWO = {"a": backlog(0, (30, 300)), "b": backlog(100, (10, 900))}


def test_ends_when_there_is_no_limit_then_all() -> None:
    assert not TriggerLimits().is_limited
    assert admitted_ends(TWO, TriggerLimits()) == {"a": 30, "b": 110}


def test_ends_when_less_waits_than_the_limit_then_all() -> None:
    assert admitted_ends(TWO, TriggerLimits(max_offsets=40, max_bytes=1200)) == {"a": 30, "b": 110}


def test_ends_when_offsets_are_limited_then_shared_by_what_waits() -> None:
    assert admitted_ends(TWO, TriggerLimits(max_offsets=20)) == {"a": 15, "b": 105}


def test_ends_when_bytes_are_limited_then_shared_by_what_waits() -> None:
    """A record of b is nine times larger, so the same bytes are fewer offsets."""
    assert admitted_ends(TWO, TriggerLimits(max_bytes=400)) == {"a": 10, "b": 103}


def test_ends_when_both_are_limited_then_by_the_lower() -> None:
    limits = TriggerLimits(max_offsets=8, max_bytes=600)

    assert admitted_ends(TWO, limits) == {"a": 6, "b": 102}


def test_ends_when_a_part_is_taken_whole_then_the_next_is_started() -> None:
    waiting = {"a": backlog(0, (10, 100), (10, 1_000))}

    assert admitted_ends(waiting, TriggerLimits(max_bytes=600)) == {"a": 15}
    assert admitted_ends(waiting, TriggerLimits(max_bytes=100)) == {"a": 10}


def test_ends_when_the_limit_is_less_than_an_offset_then_one_of_each_that_waits() -> None:
    waiting = {**TWO, "c": backlog(7)}

    for limits in (TriggerLimits(max_offsets=1), TriggerLimits(max_bytes=1)):
        assert admitted_ends(waiting, limits) == {"a": 1, "b": 101, "c": 7}


@pytest.mark.parametrize("unit", ["max_offsets", "max_bytes"])
@given(
    sizes=st.lists(
        st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5_000)), max_size=4), max_size=4
    ),
    limit=st.integers(1, 5_000),
)
def test_ends_when_repeated_then_all_is_read_and_no_batch_is_above_its_limit(
    unit: str, sizes: list[list[tuple[int, int]]], limit: int
) -> None:
    waiting = {number: backlog(0, *parts) for number, parts in enumerate(sizes)}
    wanted = {number: each.offsets.end_offset for number, each in waiting.items()}

    for _ in range(sum(wanted.values()) + 1):
        ends = admitted_ends(waiting, TriggerLimits(**{unit: limit}))
        if unit == "max_offsets":
            taken = sum(ends[n] - each.offsets.start_offset for n, each in waiting.items())
            assert taken <= max(limit, len(waiting))
        if ends == wanted:
            return
        waiting = {n: _behind(each, ends[n]) for n, each in waiting.items()}
    pytest.fail("the trigger limits never admit everything")


def _behind(waiting: Backlog, offset: int) -> Backlog:
    parts = [
        (
            OffsetRange(start_offset=max(offset, part.start_offset), end_offset=part.end_offset),
            size_bytes * (part.end_offset - max(offset, part.start_offset)) // len(part),
        )
        for part, size_bytes in waiting.parts
        if part.end_offset > offset
    ]
    end_offset = waiting.offsets.end_offset
    return Backlog(
        offsets=OffsetRange(start_offset=offset, end_offset=end_offset), parts=tuple(parts)
    )
