"""Recorded gaps inside holes, the oldest timestamps, and how many pieces a segment becomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rsm.segment.ranges import OffsetRange
from spark_tools.reading.plan import BrokerPiece, Hole, plan, split
from spark_tools.stored_partition import StoredPartition
from tests.metadata_builder import NEWEST_EPOCH, ORDERS, gap
from tests.unit.spark_tools.reading.test_plan import (
    bounds,
    continued,
    offsets_of,
    options,
    segment,
    stored,
)

SEGMENT = segment(1, 0, 100)
"""A segment of 4096 bytes."""


def with_gaps(partition: StoredPartition, *gaps: tuple[int, int]) -> StoredPartition:
    recorded = tuple(gap(start, end) for start, end in gaps)
    state = replace(partition.state, recorded_gaps=recorded, gaps_epoch=NEWEST_EPOCH)
    return replace(partition, state=state)


def test_plan_when_a_gap_lies_inside_a_hole_then_both_sides_of_it_are_holes() -> None:
    partition = with_gaps(stored(segment(1, 0, 10), segment(2, 30, 40)), (12, 15), (18, 20))

    pieces = plan(partition, options(mode="permissive"))

    assert offsets_of(pieces) == [(0, 10), (10, 12), (15, 18), (20, 30), (30, 40)]
    assert [type(each) for each in pieces[1:4]] == [Hole] * 3


def test_plan_when_a_gap_reaches_into_what_is_stored_then_that_is_read() -> None:
    partition = with_gaps(stored(segment(1, 0, 10), segment(2, 14, 20)), (8, 17))

    assert offsets_of(plan(partition, options())) == [(0, 10), (14, 20)]


def test_plan_when_a_gap_is_followed_by_the_broker_then_that_is_read() -> None:
    partition = with_gaps(stored(segment(1, 0, 10)), (10, 30))

    assert continued(partition, 20, 40) == [("stored", 0, 10), ("broker", 20, 40)]


@pytest.mark.parametrize(("newest_ms", "is_read"), [(-1, True), (0, False), (1, True)])
def test_plan_when_the_newest_record_is_of_the_first_millisecond_then_too_old(
    newest_ms: int, *, is_read: bool
) -> None:
    partition = stored(replace(SEGMENT, max_timestamp_ms=newest_ms))

    assert bool(plan(partition, options(fromTimestamp="1"))) == is_read


@pytest.mark.parametrize(
    ("split_bytes", "start", "end", "count"),
    [
        (4096, 0, 100, 1),
        (4095, 0, 100, 2),
        (1024, 0, 100, 4),
        (1023, 0, 100, 5),
        (1024, 0, 50, 2),
        (1, 0, 100, 100),
        (1, 7, 8, 1),
    ],
)
def test_split_when_a_segment_is_large_then_as_many_pieces_as_its_bytes_fill(
    split_bytes: int, start: int, end: int, count: int
) -> None:
    pieces = list(split(plan(stored(SEGMENT), options(**bounds(start, end))), split_bytes))

    lengths = [len(piece.offsets) for piece in pieces]
    assert (len(lengths), sum(lengths)) == (count, end - start)
    assert max(lengths) - min(lengths) <= 1


def test_split_when_a_piece_is_of_no_segment_then_stays_whole() -> None:
    """Only the broker knows the size."""
    offsets = OffsetRange(start_offset=10, end_offset=20)
    pieces = [kind(topic_id_partition=ORDERS, offsets=offsets) for kind in (BrokerPiece, Hole)]

    assert list(split(pieces, 1)) == pieces


@pytest.mark.parametrize(("log_start", "count"), [(39, 1), (40, 0)])
def test_plan_when_the_broker_ends_at_the_log_start_then_nothing_is_read_there(
    log_start: int, count: int
) -> None:
    assert len(continued(stored(log_start=log_start), 12, 40)) == count


def test_plan_when_the_broker_has_only_the_first_offset_then_it_is_read_there() -> None:
    assert continued(stored(), 0, 1) == [("broker", 0, 1)]


def test_plan_when_the_brokers_log_is_empty_then_it_bounds_nothing() -> None:
    assert continued(stored(segment(1, 0, 10)), 20, 20) == [("stored", 0, 10)]


def test_plan_when_a_bound_is_the_end_then_nothing_is_read() -> None:
    local = OffsetRange(start_offset=5, end_offset=12)

    assert plan(stored(segment(1, 0, 10)), options(**bounds(12, 12)), local) == []
    (piece,) = plan(stored(segment(1, 0, 10)), options(**bounds(11, 12)), local)
    assert isinstance(piece, BrokerPiece)


def test_plan_when_it_starts_after_its_end_then_nothing_is_read() -> None:
    assert plan(stored(segment(1, 0, 10)), options(**bounds(7, 3))) == []
