"""The lookup where segments overlap, are cut off in their middle, or begin at the offset."""

from __future__ import annotations

import pytest

from rlmm.lookup import (
    Absence,
    NotStored,
    locate,
    log_start_of,
    readable_ranges,
)
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from tests.remote_world import TIP, RemoteWorld, segment_of


def test_locate_when_segments_reach_equally_far_then_the_one_that_begins_last(
    world: RemoteWorld,
) -> None:
    """Kafka's lookup by epoch chooses the same."""
    world.claim()
    world.store(segment_of(0))
    later = world.store(segment_of(50, batch_count=5))

    found = locate(world.metadata, TIP, 60)

    assert isinstance(found, StoredRange)
    assert found.metadata == later


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(49, OffsetRange(start_offset=0, end_offset=50)), (50, None), (85, None)],
)
def test_locate_when_an_epoch_inside_the_segment_is_of_another_history_then_cut_there(
    world: RemoteWorld, offset: int, expected: OffsetRange | None
) -> None:
    """The segment's last epoch belongs to the lineage, too; the epochs between do not."""
    world.store(segment_of(0), lineage=Lineage.of((0, 0), (1, 50), (2, 80)))
    world.claim(Lineage.of((0, 0), (2, 50)))

    found = locate(world.metadata, TIP, offset)

    if expected is not None:
        assert isinstance(found, StoredRange)
        assert found.offsets == expected
    else:
        assert found == NotStored(
            topic_id_partition=TIP, offset=offset, absence=Absence.BEYOND_STORED
        )


def test_readable_ranges_when_the_first_offset_is_a_segment_of_its_own_then_in_it(
    world: RemoteWorld,
) -> None:
    world.claim()
    world.store(segment_of(0, batch_count=1, records_per_batch=1))

    ranges = readable_ranges(world.metadata, TIP)

    assert [r.offsets for r in ranges] == [OffsetRange(start_offset=0, end_offset=1)]


@pytest.mark.parametrize(("from_offset", "starts"), [(99, [0, 100]), (100, [100]), (200, [])])
def test_readable_ranges_when_a_segment_ends_at_the_offset_then_left_out(
    world: RemoteWorld, from_offset: int, starts: list[int]
) -> None:
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base))

    ranges = readable_ranges(world.metadata, TIP, from_offset)

    assert [r.offsets.start_offset for r in ranges] == starts


@pytest.mark.parametrize(
    ("local", "recorded", "first_stored", "expected"),
    [
        (0, None, None, 0),
        (50, None, None, 50),
        (50, 30, None, 50),
        (50, 70, None, 70),
        (50, 0, 10, 0),
        (50, 70, 10, 70),
        (50, None, 10, 10),
        (5, None, 10, 5),
    ],
)
def test_log_start_when_known_in_part_then_the_lowest_that_may_be_read(
    local: int, recorded: int | None, first_stored: int | None, expected: int
) -> None:
    found = log_start_of(local, recorded_offset=recorded, first_stored_offset=first_stored)
    assert found == expected
