from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.coverage import covered_end, log_bytes, stored_end, stored_ranges
from rsm.segment.epochs import Lineage
from tests.unit.rlm.policy.views import remote

BOUNDS = st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda b: (b[0], b[0] + b[1]))


@given(st.lists(BOUNDS, max_size=12), st.integers(0, 60))
def test_covered_end_when_any_ranges_then_first_offset_that_no_range_holds(
    bounds: list[tuple[int, int]], start: int
) -> None:
    """The result equals that of counting offsets one by one."""
    ranges = stored_ranges(Lineage.of((0, 0)), [remote(a, b).metadata for a, b in bounds])
    held = {offset for a, b in bounds for offset in range(a, b)}
    expected = start
    while expected in held:
        expected += 1
    assert covered_end(ranges, start) == expected


def test_stored_ranges_when_lineage_cut_the_segment_then_readable_up_to_the_cut() -> None:
    """Scenario 8: divergence in the middle of a segment."""
    written = Lineage.of((0, 0), (1, 50))
    segment = remote(0, 100, epochs=written).metadata
    [stored] = stored_ranges(Lineage.of((0, 0), (1, 50), (2, 80)), [segment])
    assert stored.offsets.end_offset == 80


def test_stored_ranges_when_lineage_lacks_the_epoch_then_nothing() -> None:
    segment = remote(0, 100, epochs=Lineage.of((1, 0))).metadata
    assert stored_ranges(Lineage.of((0, 0), (2, 0)), [segment]) == ()


def test_stored_end_when_a_hole_lies_before_then_reaches_over_it() -> None:
    ranges = stored_ranges(Lineage.of((0, 0)), [remote(0, 5).metadata, remote(8, 9).metadata])
    assert stored_end(ranges) == 9


@given(st.lists(BOUNDS, max_size=12))
def test_log_bytes_when_segments_overlap_then_each_stored_offset_counts_once(
    bounds: list[tuple[int, int]],
) -> None:
    """A byte for each offset makes the shares exact."""
    segments = [remote(a, b, size=b - a).metadata for a, b in bounds]

    ranges = stored_ranges(Lineage.of((0, 0)), segments)

    assert log_bytes(ranges) == len({offset for a, b in bounds for offset in range(a, b)})


def test_log_bytes_when_an_election_cut_off_a_part_then_only_the_share_of_the_rest() -> None:
    lineage = Lineage.of((0, 0), (2, 75))

    assert log_bytes(stored_ranges(lineage, [remote(0, 100, size=400).metadata])) == 300


def test_log_bytes_when_a_merged_segment_has_all_of_its_parts_then_its_size() -> None:
    """The parts' bytes need not be in proportion to their offsets."""
    parts = [remote(0, 100, size=10), remote(100, 200, size=70), remote(300, 400, size=20)]
    merged = remote(0, 200, size=80)
    segments = [each.metadata for each in (*parts, merged)]

    assert log_bytes(stored_ranges(Lineage.of((0, 0)), segments)) == 80 + 20
