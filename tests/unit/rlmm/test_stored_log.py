"""The lookup in all that is stored of one partition, without a metadata manager."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.lookup import Absence, NotStored, StoredLog
from rlmm.state.partition_state import PartitionState
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import (
    FINISHED,
    NEWEST_EPOCH,
    ORDERS,
    gap,
    log_starts,
    segment_metadata,
)

Bounds = tuple[int, int]
_BOUNDS = st.tuples(st.integers(0, 40), st.integers(1, 20)).map(lambda it: (it[0], it[0] + it[1]))


def stored(number: int, start: int, end: int) -> StoredRange:
    metadata = segment_metadata(number, start, end, epochs=((0, start),), state=FINISHED)
    return StoredRange(metadata=metadata, offsets=metadata.offsets)


def log_of(*segments: Bounds, gaps: tuple[Bounds, ...] = ()) -> StoredLog:
    ranges = [stored(number, *each) for number, each in enumerate(sorted(segments))]
    return StoredLog(
        ORDERS, ranges, [OffsetRange(start_offset=start, end_offset=end) for start, end in gaps]
    )


def absence(log: StoredLog, offset: int) -> tuple[Absence, int | None]:
    found = log.at(offset)
    assert isinstance(found, NotStored)
    assert (found.topic_id_partition, found.offset) == (ORDERS, offset)
    return found.absence, found.until_offset


def test_at_when_ranges_overlap_then_the_one_that_ends_last() -> None:
    log = log_of((0, 100), (5, 20), (10, 15))

    assert [log.at(offset) for offset in (0, 12, 99)] == [log.ranges[0]] * 3


def test_at_when_ranges_end_at_the_same_offset_then_the_first() -> None:
    log = log_of((0, 20), (5, 20))

    assert log.at(10) == log.ranges[0]


def test_at_when_between_and_above_ranges_then_hole_and_beyond() -> None:
    log = log_of((0, 10), (15, 20))

    assert absence(log, 10) == (Absence.HOLE, 15)
    assert absence(log, 14) == (Absence.HOLE, 15)
    assert absence(log, 20) == (Absence.BEYOND_STORED, None)
    assert absence(log_of(), 0) == (Absence.BEYOND_STORED, None)


def test_at_when_in_a_gap_then_up_to_the_next_range_or_the_gaps_end() -> None:
    log = log_of((0, 10), (15, 20), gaps=((10, 17), (25, 30), (30, 32)))

    assert absence(log, 10) == (Absence.RECORDED_GAP, 15)
    assert absence(log, 20) == (Absence.BEYOND_STORED, None)
    assert absence(log, 25) == (Absence.RECORDED_GAP, 32)
    assert absence(log, 32) == (Absence.BEYOND_STORED, None)


def test_edges_above_when_one_is_at_the_offset_then_the_next_one() -> None:
    log = log_of((0, 10), (15, 20), gaps=((10, 12), (30, 40)))

    assert [log.stored_above(offset) for offset in (0, 14, 15)] == [15, 15, None]
    assert [log.gap_above(offset) for offset in (9, 10, 30)] == [10, 30, None]


@given(segments=st.lists(_BOUNDS, max_size=8), offset=st.integers(0, 70))
def test_at_when_segments_lie_anyhow_then_as_a_search_of_all(
    segments: list[Bounds], offset: int
) -> None:
    log = log_of(*segments)

    found = log.at(offset)

    ends = [each.offsets.end_offset for each in log.ranges if offset in each.offsets]
    starts = [start for start, _ in segments if start > offset]
    if isinstance(found, StoredRange):
        assert offset in found.offsets
        assert found.offsets.end_offset == max(ends)
    else:
        assert not ends
        assert found.until_offset == min(starts, default=None)


@pytest.mark.parametrize(("log_start", "starts"), [(9, [9, 10]), (10, [10]), (24, [24]), (25, [])])
def test_of_when_a_segment_ends_at_the_log_start_then_nothing_of_it_is_readable(
    log_start: int, starts: list[int]
) -> None:
    state = PartitionState(lineage=Lineage.of((0, 0)), log_starts=log_starts(log_start))
    segments = [stored(1, 0, 10).metadata, stored(2, 10, 25).metadata]

    log = StoredLog.of(ORDERS, state, segments)

    assert [each.offsets.start_offset for each in log.ranges] == starts


def test_of_when_gaps_are_recorded_then_those_above_the_log_start() -> None:
    state = PartitionState(
        lineage=Lineage.of((0, 0)),
        log_starts=log_starts(10),
        recorded_gaps=(gap(2, 5), gap(12, 15)),
        gaps_epoch=NEWEST_EPOCH,
    )

    log = StoredLog.of(ORDERS, state, [])

    assert absence(log, 12) == (Absence.RECORDED_GAP, 15)
    assert absence(log, 2) == (Absence.BEYOND_STORED, None)
