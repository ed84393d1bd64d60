from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsm.cache.noted_positions import NotedPositions


@given(pairs=st.lists(st.tuples(st.integers(0, 50), st.integers())), at=st.integers(-1, 51))
def test_floor_when_pairs_were_noted_then_the_greatest_not_above(
    pairs: list[tuple[int, int]], at: int
) -> None:
    noted = NotedPositions()
    for pair in pairs:
        noted.note("a", *pair)
        noted.note("b", 0, 0)

    expected = max((pair for pair in dict(pairs).items() if pair[0] <= at), default=None)

    assert noted.floor("a", at) == expected


def test_note_when_there_are_too_many_then_those_of_the_object_noted_longest_ago_go() -> None:
    noted = NotedPositions(limit_count=3)
    for key, at in [("a", 0), ("b", 0), ("a", 1), ("c", 0)]:
        noted.note(key, at, 7)

    assert [noted.floor(key, 9) for key in "abc"] == [(1, 7), None, (0, 7)]
    assert len(noted) == 3


def test_forget_when_called_then_nothing_of_the_object_is_kept() -> None:
    noted = NotedPositions()
    noted.note("a", 1, 2)

    noted.forget("a")
    noted.forget("never noted")

    assert noted.floor("a", 1) is None
    assert len(noted) == 0
