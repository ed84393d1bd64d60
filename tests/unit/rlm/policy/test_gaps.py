"""Which offsets are recorded as lost before they were stored."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.policy.gaps import gaps_to_record, with_gaps
from rlm.policy.plan import plan
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.coverage import covered_end
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange, missing
from tests.metadata_builder import NEWEST_EPOCH
from tests.unit.rlm.policy.views import NOW_MS, Given, local, stored_up_to

ROLLED = tuple(local(i * 100, i * 100 + 100) for i in range(5, 10))
SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=6)


def ranges(spans: list[tuple[int, int]]) -> list[OffsetRange]:
    return [OffsetRange(start_offset=start, end_offset=start + size) for start, size in spans]


def recorded(given: Given) -> list[tuple[int, int]] | None:
    found = gaps_to_record(given.view())
    if found is None:
        return None
    return [(gap.offsets.start_offset, gap.offsets.end_offset) for gap in found]


@pytest.mark.parametrize(("stored_end", "first"), [(300, 0), (0, 500)])
def test_first_log_start_when_the_local_start_moved_meanwhile_then_where_the_stored_begins(
    stored_end: int, first: int
) -> None:
    """R6: copies may end before the gap is recorded; later deletions cause a further gap."""
    given = Given(rolled=ROLLED, segments=stored_up_to(stored_end), local_start=500, log_start=None)

    decided = plan(given.view())

    assert decided.log_start is not None
    assert decided.log_start.offset == first


@pytest.mark.parametrize(
    ("stored_end", "trimmed", "log_start", "gap"),
    [
        (300, 200, 0, (300, 500)),
        (300, None, 0, (300, 500)),
        (0, None, 0, (0, 500)),
        (0, None, 450, (450, 500)),
        (500, 200, 0, None),
        (300, 500, 0, None),
        (300, 200, 500, None),
    ],
)
def test_gaps_when_the_local_start_is_beyond_the_view_then_what_is_not_stored(
    stored_end: int, trimmed: int | None, log_start: int, gap: tuple[int, int] | None
) -> None:
    """R6, scenario 83: a broker's own retention, or somebody's DeleteRecords."""
    given = Given(
        rolled=ROLLED,
        segments=stored_up_to(stored_end),
        local_start=500,
        trimmed=trimmed,
        log_start=log_start,
    )

    assert recorded(given) == (None if gap is None else [gap])


def test_gaps_when_tiering_has_not_started_then_none() -> None:
    """Records from before tiering are not recorded as lost."""
    assert recorded(Given(rolled=ROLLED, local_start=500, log_start=None)) is None


def test_gaps_when_on_record_then_not_recorded_again() -> None:
    view = Given(rolled=ROLLED, segments=stored_up_to(300), local_start=500).view()
    first = gaps_to_record(view)
    assert first is not None

    again = gaps_to_record(
        replace(view, state=replace(view.state, recorded_gaps=first, gaps_epoch=NEWEST_EPOCH))
    )

    assert again is None


def reasons(gaps: tuple[RecordedGap, ...]) -> dict[int, GapReason]:
    return {offset: gap.reason for gap in gaps for offset in range(100) if offset in gap.offsets}


@given(SPANS, SPANS, st.sampled_from(GapReason))
def test_with_gaps_when_more_is_lost_then_hold_all_each_for_its_first_reason(
    known: list[tuple[int, int]], lost: list[tuple[int, int]], reason: GapReason
) -> None:
    """R6: gaps of the outage policy and gaps of other programs stay separate."""
    before = with_gaps((), ranges(known), reason=GapReason.SHED, now_ms=1) or ()

    after = with_gaps(before, ranges(lost), reason=reason, now_ms=2) or before

    offsets = {offset for each in ranges(lost) for offset in range(100) if offset in each}
    assert reasons(after) == {**dict.fromkeys(offsets, reason), **reasons(before)}
    assert all(a.offsets.end_offset <= b.offsets.start_offset for a, b in pairwise(after))
    assert all(a.offsets != b.offsets for a, b in pairwise(after))


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        (GapReason.SHED, [(0, 25, GapReason.SHED, 2)]),
        (
            GapReason.EXTERNAL_START,
            [(0, 20, GapReason.SHED, 1), (20, 25, GapReason.EXTERNAL_START, 2)],
        ),
    ],
)
def test_with_gaps_when_one_touches_then_joined_if_lost_for_the_same_reason(
    reason: GapReason, found: list[tuple[int, int, GapReason, int]]
) -> None:
    """R6."""
    before = with_gaps((), ranges([(0, 20)]), reason=GapReason.SHED, now_ms=1)
    assert before is not None

    after = with_gaps(before, ranges([(10, 15)]), reason=reason, now_ms=2)

    assert after is not None
    assert [
        (g.offsets.start_offset, g.offsets.end_offset, g.reason, g.recorded_ms) for g in after
    ] == found


def test_missing_when_stored_in_parts_then_what_lies_between() -> None:
    view = Given(segments=(*stored_up_to(100), *stored_up_to(600)[3:5])).view()

    found = missing(
        (part.offsets for part in view.stored), OffsetRange(start_offset=50, end_offset=700)
    )

    assert [(r.start_offset, r.end_offset) for r in found] == [(100, 300), (500, 700)]


def test_covered_end_when_a_gap_is_on_record_then_counts_on_from_its_end() -> None:
    """R6: a gap does not end the contiguous stored range."""
    view = Given(segments=(*stored_up_to(200), *stored_up_to(600)[3:5])).view()
    gap = RecordedGap(
        offsets=OffsetRange(start_offset=200, end_offset=300),
        reason=GapReason.SHED,
        recorded_ms=NOW_MS,
    )

    assert covered_end(view.stored, 0) == 200
    assert covered_end(view.stored, 0, gaps=(gap.offsets,)) == 500


def test_gaps_when_the_log_has_lost_data_or_parted_then_none_is_recorded() -> None:
    """An operator decides first which log counts."""
    first, _, _, last = stored_up_to(400)
    given = Given(segments=(first, last), local_start=200, trimmed=50)
    parted = replace(
        given, stored_lineage=Lineage.of((0, 0), (2, 700)), checkpoint=Lineage.of((1, 600))
    )

    assert recorded(given) == [(100, 200)]
    assert (parted.view().conflict_offset, parted.view().is_diverged) == (600, False)
    assert recorded(parted) is None
    assert recorded(replace(given, high_watermark=350)) is None
