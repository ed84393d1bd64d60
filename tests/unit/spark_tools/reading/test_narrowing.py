from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rsm.segment.ranges import OffsetRange
from spark_tools.reading.narrowing import MAX_OFFSET, Comparison, Narrowing, narrowed

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_896_091_200_000


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("==", 5, (5, 6)),
        (">", 5, (6, MAX_OFFSET)),
        (">=", 5, (5, MAX_OFFSET)),
        ("<", 5, (0, 5)),
        ("<=", 5, (0, 6)),
        ("in", (9, 3), (3, 10)),
        ("<", 0, (0, 0)),
        ("<", -7, (0, 0)),
        ("==", "five", (0, MAX_OFFSET)),
    ],
)
def test_narrowed_when_offsets_are_compared_then_nothing_that_matches_is_lost(
    operator: str, value: object, expected: tuple[int, int]
) -> None:
    found = narrowed([Comparison("offset", operator, value)])

    assert (found.offsets.start_offset, found.offsets.end_offset) == expected


def test_narrowed_when_all_must_hold_then_by_all() -> None:
    found = narrowed(
        [
            Comparison("Offset", ">=", 10),
            Comparison("offset", "<", 20),
            Comparison("partition", "in", (1, 2)),
            Comparison("partition", "==", 2),
            Comparison("topic", "==", "orders"),
            Comparison("value", "==", b"x"),
        ]
    )

    assert found == Narrowing(
        topics=frozenset({"orders"}),
        partitions=frozenset({2}),
        offsets=OffsetRange(start_offset=10, end_offset=20),
    )
    assert found.admits("orders", 2)
    assert not found.admits("orders", 1)
    assert not found.admits("payments", 2)


def test_narrowed_when_times_are_compared_then_whole_milliseconds_around_them() -> None:
    found = narrowed([Comparison("timestamp", ">", NOON), Comparison("timestamp", "<=", NOON)])

    assert (found.from_ms, found.until_ms) == (NOON_MS, NOON_MS + 1)
    assert narrowed([Comparison("timestamp", "==", NOON.replace(tzinfo=None))]) == Narrowing()


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("==", (NOON_MS, NOON_MS + 1)),
        (">", (NOON_MS, None)),
        (">=", (NOON_MS, None)),
        ("<", (None, NOON_MS + 1)),
        ("<=", (None, NOON_MS + 1)),
        ("in", (None, None)),
    ],
)
def test_narrowed_when_a_time_is_compared_then_the_millisecond_that_holds_it_is_read(
    operator: str, expected: tuple[int | None, int | None]
) -> None:
    found = narrowed([Comparison("timestamp", operator, NOON)])
    assert (found.from_ms, found.until_ms) == expected


def test_narrowed_when_times_are_compared_twice_then_the_narrower_ones() -> None:
    later = NOON.replace(hour=13)
    filters = [
        Comparison("timestamp", operator, time)
        for operator in (">=", "<")
        for time in (later, NOON, later)
    ]

    found = narrowed(filters)

    assert (found.from_ms, found.until_ms) == (NOON_MS + 3_600_000, NOON_MS + 1)


def test_narrowed_when_another_filter_lists_nothing_then_the_first_still_holds() -> None:
    listed, unlisted = Comparison("partition", "==", 2), Comparison("partition", ">", 0)

    assert narrowed([listed, unlisted]).partitions == frozenset({2})
    assert narrowed([unlisted, listed]).partitions == frozenset({2})
    assert narrowed([unlisted]).partitions is None


def test_narrowed_when_nothing_is_compared_then_every_offset() -> None:
    """Kafka's offsets are of 63 bits."""
    assert narrowed([]).offsets == OffsetRange(start_offset=0, end_offset=2**63 - 1)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (((">=", 10), ("<", 10)), (10, 10)),
        (((">=", 10), ("<", 5)), (10, 10)),
        (((">", 10), (">", 5)), (11, MAX_OFFSET)),
        ((("<=", 10), ("<=", 20)), (0, 11)),
        ((("!=", 10),), (0, MAX_OFFSET)),
    ],
)
def test_narrowed_when_offsets_are_compared_twice_then_by_both(
    filters: tuple[tuple[str, int], ...], expected: tuple[int, int]
) -> None:
    found = narrowed([Comparison("offset", operator, value) for operator, value in filters])
    assert (found.offsets.start_offset, found.offsets.end_offset) == expected


def test_narrowed_when_a_time_is_before_1970_then_the_millisecond_that_holds_it_is_read() -> None:
    just_before = datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)

    found = narrowed([Comparison("timestamp", "==", just_before)])

    assert (found.from_ms, found.until_ms) == (-1, 0)
