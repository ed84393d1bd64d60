"""Responses that break off at any byte, and the requests that follow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.broken_reads import RangeBody, ReadLimits, read_on

CONTENT = bytes(range(100))
PATIENT = ReadLimits(max_openings=3, timeout_ms=60_000)


class BreakingStore:
    """Has `CONTENT`; its first answers break off after `cuts` bytes, with an error if `loud`."""

    def __init__(self, *cuts: int, loud: bool = True, tells_length: bool = True) -> None:
        self.asked: list[tuple[int, int, str | None]] = []
        self._cuts = list(cuts)
        self._loud = loud
        self._tells_length = tells_length

    @contextmanager
    def open(self, positions: ByteRange, version: str | None) -> Iterator[RangeBody]:
        self.asked.append((positions.start_position, positions.end_position, version))
        content = CONTENT[positions.start_position : positions.end_position]
        cut = self._cuts.pop(0) if self._cuts else len(content)
        yield RangeBody(
            pieces=self._pieces(content, cut),
            length_bytes=len(content) if self._tells_length else None,
            version="v1",
        )

    def _pieces(self, content: bytes, cut: int) -> Iterator[bytes]:
        for position in range(0, min(cut, len(content)), 7):
            yield content[position : min(position + 7, cut)]
        if cut < len(content) and self._loud:
            raise RetriableError("broke off")


def wanted(start: int, end: int) -> ByteRange:
    return ByteRange(start_position=start, end_position=end)


@given(
    st.integers(0, 120),
    st.integers(0, 120),
    st.lists(st.integers(0, 100), max_size=2),
    st.booleans(),
)
def test_read_on_when_answers_break_anywhere_then_all_bytes_come_once(
    one: int, other: int, cuts: list[int], loud: bool
) -> None:
    """Scenario 94."""
    start, end = sorted((one, other))

    content = read_on(BreakingStore(*cuts, loud=loud).open, wanted(start, end), PATIENT)

    assert content == CONTENT[start:end]


def test_read_on_when_it_broke_then_the_rest_of_the_same_version_is_asked_for() -> None:
    store = BreakingStore(30, 25)

    read_on(store.open, wanted(10, 200), PATIENT)

    assert store.asked == [(10, 200, None), (40, 100, "v1"), (65, 100, "v1")]


@pytest.mark.parametrize("loud", [True, False])
def test_read_on_when_it_breaks_too_often_then_retriable(loud: bool) -> None:
    store = BreakingStore(10, 10, 10, loud=loud)

    with pytest.raises(RetriableError):
        read_on(store.open, wanted(0, 100), PATIENT)

    assert len(store.asked) == 3


def test_read_on_when_no_length_is_known_then_the_end_is_where_it_ends() -> None:
    store = BreakingStore(50, tells_length=False)

    assert read_on(store.open, wanted(0, 200), PATIENT) == CONTENT
    assert len(store.asked) == 2


def test_read_on_when_the_bytes_are_late_then_no_more_is_asked_for() -> None:
    store = BreakingStore()

    with pytest.raises(RetriableError, match="too slowly"):
        read_on(store.open, wanted(0, 100), ReadLimits(max_openings=3, timeout_ms=-1))

    assert len(store.asked) == 1


def test_read_on_when_more_comes_than_was_asked_for_then_corrupt() -> None:
    @contextmanager
    def generous(_positions: ByteRange, _version: str | None) -> Iterator[RangeBody]:
        yield RangeBody(pieces=iter([b"x" * 11]))

    with pytest.raises(CorruptError):
        read_on(generous, wanted(0, 10), PATIENT)
