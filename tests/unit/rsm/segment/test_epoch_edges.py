"""Where two histories diverge, and which offsets are covered, exact to the offset."""

from __future__ import annotations

import pytest

from rsm.segment.coverage import covered_end, stored_end, stored_ranges
from rsm.segment.epochs import EpochEntry, Lineage, stitch
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.unit.rlm.policy.views import remote

PARTS = ((0, 20), (1, 50))
"""A segment of offsets 20 to 90: epoch 0 wrote it up to 50, then epoch 1."""


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_epoch_entry_when_negative_then_refused(epoch: int, start_offset: int) -> None:
    with pytest.raises(ValueError, match="the epoch entry is invalid"):
        EpochEntry(epoch=epoch, start_offset=start_offset)


def test_lineage_when_an_epoch_wrote_nothing_then_the_next_begins_where_it_did() -> None:
    lineage = Lineage.of((0, 0), (1, 10), (2, 10))

    assert lineage.epoch_for_offset(10) == 2
    assert (lineage.start_offset(1), lineage.end_offset(1)) == (10, 10)


def test_lineage_when_offsets_go_back_then_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        Lineage.of((0, 10), (1, 9))


@pytest.mark.parametrize(("epoch", "start", "end"), [(0, None, 20), (3, None, 40), (9, None, None)])
def test_lineage_when_an_epoch_is_not_of_it_then_ends_where_a_later_one_begins(
    epoch: int, start: int | None, end: int | None
) -> None:
    lineage = Lineage.of((2, 20), (5, 40))
    assert (lineage.start_offset(epoch), lineage.end_offset(epoch)) == (start, end)


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        pytest.param(((0, 0), (1, 50)), 90, id="the same"),
        pytest.param(((0, 0), (1, 50), (2, 90)), 90, id="a later epoch begins at its end"),
        pytest.param(((0, 0), (1, 50), (2, 89)), 89, id="a later epoch begins in it"),
        pytest.param(((0, 0), (2, 50)), 50, id="its last epoch is unknown"),
        pytest.param(((0, 0), (2, 60)), 50, id="its last epoch is unknown, the first continued"),
        pytest.param(((0, 0), (1, 60)), 50, id="its last epoch begins later"),
        pytest.param(((0, 0), (1, 40)), 40, id="its last epoch begins earlier"),
        pytest.param(((0, 20), (1, 50)), 90, id="its first epoch begins with it"),
        pytest.param(((0, 21), (1, 50)), 20, id="its first epoch begins in it"),
        pytest.param(((0, 0), (1, 20)), 20, id="its first epoch ends where it begins"),
        pytest.param(((0, 0), (1, 10)), 20, id="its first epoch ends below"),
        pytest.param(((3, 0),), 20, id="none of it is known"),
        pytest.param((), 20, id="nothing is known"),
    ],
)
def test_common_end_when_histories_part_then_where_they_do(
    current: tuple[tuple[int, int], ...], expected: int
) -> None:
    """Scenario 8."""
    assert Lineage.of(*current).common_end(Lineage.of(*PARTS).entries, 90) == expected


def test_common_end_when_a_segment_has_no_epochs_then_its_end() -> None:
    assert Lineage.of((0, 0)).common_end((), 90) == 90


@pytest.mark.parametrize(
    ("stored", "checkpoint", "joined", "conflict"),
    [
        # The checkpoint begins where the stored epoch does: no record of that epoch is left.
        (((0, 0), (1, 100)), ((3, 100),), ((0, 0), (3, 100)), None),
        (((0, 0), (1, 99)), ((3, 100),), ((0, 0), (1, 99), (3, 100)), None),
        # If both have an epoch, its lower start counts.
        (((0, 0), (1, 120)), ((1, 100),), ((0, 0), (1, 100)), None),
        (((0, 0), (1, 80)), ((1, 100),), ((0, 0), (1, 80)), None),
        # A newer stored epoch was cut off where the checkpoint begins; below, the two conflict.
        (((0, 0), (1, 100), (3, 100)), ((1, 100),), ((0, 0), (1, 100)), None),
        (((0, 0), (1, 90), (3, 99)), ((1, 100),), ((0, 0), (1, 90)), 100),
        # The stored lineage lacks the checkpoint's first epoch.
        (((0, 0), (2, 150)), ((1, 100),), ((0, 0), (1, 100)), 100),
    ],
)
def test_stitch_when_stored_and_checkpoint_meet_then_joined_there(
    stored: tuple[tuple[int, int], ...],
    checkpoint: tuple[tuple[int, int], ...],
    joined: tuple[tuple[int, int], ...],
    conflict: int | None,
) -> None:
    """R5."""
    found = stitch(Lineage.of(*stored), Lineage.of(*checkpoint))

    assert (found.lineage, found.conflict_offset) == (Lineage.of(*joined), conflict)


@pytest.mark.parametrize(
    ("bounds", "from_offset", "expected"),
    [
        ([(10, 20), (20, 30)], 10, 30),
        ([(10, 20), (21, 30)], 10, 20),
        ([(10, 40), (15, 20)], 10, 40),
        ([(10, 20)], 9, 9),
        ([(10, 20)], 20, 20),
        ([(10, 20)], 25, 25),
    ],
)
def test_covered_end_when_gaps_are_recorded_then_they_are_no_holes(
    bounds: list[tuple[int, int]], from_offset: int, expected: int
) -> None:
    gaps = [OffsetRange(start_offset=start, end_offset=end) for start, end in bounds]
    assert covered_end((), from_offset, gaps=gaps) == expected


def test_covered_end_when_stored_and_gaps_alternate_then_after_the_last() -> None:
    ranges = stored_ranges(Lineage.of((0, 0)), [remote(0, 10).metadata, remote(20, 30).metadata])
    gap = OffsetRange(start_offset=10, end_offset=20)

    assert covered_end(ranges, 0, gaps=[gap]) == 30
    assert covered_end(ranges, 0) == 10


def test_stored_end_when_nothing_is_stored_then_none() -> None:
    assert stored_end(()) is None


def test_stored_ranges_when_segments_come_in_any_order_then_finished_ones_ascend() -> None:
    started = remote(5, 9, state=SegmentState.COPY_SEGMENT_STARTED)
    segments = [each.metadata for each in (remote(8, 12), started, remote(0, 5))]

    ranges = stored_ranges(Lineage.of((0, 0)), segments)

    assert [stored.offsets.start_offset for stored in ranges] == [0, 8]
