"""Which segment serves an offset, and the reason if none does."""

from __future__ import annotations

import pytest

from rlmm.lookup import (
    Absence,
    NotStored,
    locate,
    log_start_offset,
    readable_ranges,
)
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from tests.remote_world import TIP, RemoteWorld, segment_of


def not_stored(absence: Absence, offset: int, until_offset: int | None) -> NotStored:
    return NotStored(
        topic_id_partition=TIP, offset=offset, absence=absence, until_offset=until_offset
    )


@pytest.mark.parametrize(("offset", "base_offset"), [(0, 0), (99, 0), (100, 100), (199, 100)])
def test_locate_when_stored_then_the_segment_that_holds_it(
    world: RemoteWorld, offset: int, base_offset: int
) -> None:
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base))

    found = locate(world.metadata, TIP, offset)

    assert isinstance(found, StoredRange)
    assert found.offsets == OffsetRange(start_offset=base_offset, end_offset=base_offset + 100)


def test_locate_when_above_all_then_beyond_stored(world: RemoteWorld) -> None:
    world.claim()
    world.store(segment_of(0))

    assert locate(world.metadata, TIP, 100) == not_stored(Absence.BEYOND_STORED, 100, None)


def test_locate_when_nothing_was_claimed_then_beyond_stored(world: RemoteWorld) -> None:
    world.store(segment_of(0))

    assert locate(world.metadata, TIP, 5) == not_stored(Absence.BEYOND_STORED, 5, None)


def test_locate_when_below_recorded_log_start_then_returns_where_it_is(world: RemoteWorld) -> None:
    """Scenario 47: offsets below the log start are out of range, also within a kept segment."""
    world.claim()
    world.store(segment_of(0))
    world.advance_log_start(40)

    assert locate(world.metadata, TIP, 39) == not_stored(Absence.BELOW_LOG_START, 39, 40)


def test_locate_when_log_start_is_inside_segment_then_readable_from_it(world: RemoteWorld) -> None:
    """Scenario 113: a segment that straddles the log start is served from the log start on."""
    world.claim()
    world.store(segment_of(0))
    world.advance_log_start(40)

    found = locate(world.metadata, TIP, 40)

    assert isinstance(found, StoredRange)
    assert found.offsets == OffsetRange(start_offset=40, end_offset=100)


def test_locate_when_lower_than_all_and_no_start_recorded_then_below_start(
    world: RemoteWorld,
) -> None:
    world.claim()
    world.store(segment_of(500))

    assert locate(world.metadata, TIP, 499) == not_stored(Absence.BELOW_LOG_START, 499, 500)


def test_locate_when_in_hole_then_names_its_end(world: RemoteWorld) -> None:
    """Scenario 63: missing offsets are neither skipped nor out of range."""
    world.claim()
    world.store(segment_of(0))
    world.store(segment_of(200))

    assert locate(world.metadata, TIP, 150) == not_stored(Absence.HOLE, 150, 200)


def test_locate_when_log_start_is_recorded_below_a_hole_then_hole(world: RemoteWorld) -> None:
    world.claim()
    world.store(segment_of(200))
    world.advance_log_start(100)

    assert locate(world.metadata, TIP, 150) == not_stored(Absence.HOLE, 150, 200)


def test_locate_when_lineage_cuts_segment_then_readable_to_the_cut_only(world: RemoteWorld) -> None:
    """Scenario 8: a segment that diverges in its middle is used up to its epoch's end."""
    world.store(segment_of(0))
    world.claim(Lineage.of((0, 0), (2, 60)))

    found = [locate(world.metadata, TIP, offset) for offset in (59, 60)]

    assert isinstance(found[0], StoredRange)
    assert found[0].offsets == OffsetRange(start_offset=0, end_offset=60)
    assert found[1] == not_stored(Absence.BEYOND_STORED, 60, None)


def test_locate_when_segment_is_of_another_history_then_the_one_in_lineage(
    world: RemoteWorld,
) -> None:
    """Scenario 7: segments outside the lineage are never served."""
    world.store(segment_of(0, leader_epoch=1), lineage=Lineage.of((1, 0)))
    ours = world.store(segment_of(0, leader_epoch=2), lineage=Lineage.of((2, 0)))
    world.claim(Lineage.of((2, 0)))

    found = locate(world.metadata, TIP, 50)

    assert isinstance(found, StoredRange)
    assert found.metadata == ours


def test_log_start_offset_when_none_was_recorded_then_the_lowest_of_both_tiers(
    world: RemoteWorld,
) -> None:
    world.claim()
    world.store(segment_of(100))

    assert [log_start_offset(world.metadata, TIP, local) for local in (50, 300)] == [50, 100]


def test_log_start_offset_when_recorded_then_that(world: RemoteWorld) -> None:
    """Scenario 92: a broker whose log start went back does not bring expired data back."""
    world.claim()
    world.store(segment_of(0))
    world.advance_log_start(70)

    assert log_start_offset(world.metadata, TIP, 0) == 70


def test_readable_ranges_when_below_log_start_then_left_out(world: RemoteWorld) -> None:
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base))
    world.advance_log_start(100)

    ranges = readable_ranges(world.metadata, TIP)

    assert [r.offsets.start_offset for r in ranges] == [100]


@pytest.mark.parametrize(
    ("offset", "until_offset"), [(100, 150), (149, 150), (170, 300), (299, 300)]
)
def test_locate_when_in_a_recorded_gap_then_returns_where_to_look_next(
    world: RemoteWorld, offset: int, until_offset: int
) -> None:
    """R6, scenario 83: up to a stored part of the gap if there is one, else to its end."""
    world.claim()
    for base in (0, 150):
        world.store(segment_of(base, batch_count=2 if base else 10))
    world.record_gap(100, 300)

    found = locate(world.metadata, TIP, offset)

    assert found == not_stored(Absence.RECORDED_GAP, offset, until_offset)


def test_locate_when_gaps_touch_then_returns_where_the_last_of_them_ends(
    world: RemoteWorld,
) -> None:
    """R6: gaps of the outage policy, followed by a gap of another program."""
    world.claim()
    world.store(segment_of(0))
    world.record_gap(100, 130, 200)

    found = locate(world.metadata, TIP, 110)

    assert found == not_stored(Absence.RECORDED_GAP, 110, 200)


def test_locate_when_stored_within_a_recorded_gap_then_the_segment(world: RemoteWorld) -> None:
    world.claim()
    world.store(segment_of(100))
    world.record_gap(50, 300)

    assert isinstance(locate(world.metadata, TIP, 120), StoredRange)
