"""Where a record is, and the explanation of its local copy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.policy.blocked import Blocked
from rlm.policy.trim_gate import decide_trim
from rlm.policy.view import PartitionView, PolicyLimits
from rlm.status.explanation import OffsetExplanation, local_copy, offset_location
from rlmm.events.policy import PolicyState
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import NEWEST_EPOCH
from tests.unit.rlm.policy.views import HOUR_MS, Given, local, policy, remote, stored_up_to

# Stored 0..600, trimmed to 300, rolled to 1000, the active segment to 1050; expired to 100.
TIERED = Given(
    segments=stored_up_to(600),
    rolled=tuple(local(s, s + 100) for s in range(300, 1000, 100)),
    local_start=300,
    log_start=100,
    trimmed=300,
)


def where(view: PartitionView, offset: int) -> OffsetExplanation:
    return offset_location(
        offset,
        state=view.state,
        lineage=view.lineage,
        offsets=view.offsets,
        segments=view.segments,
    )


def gap(start: int, end: int, reason: GapReason) -> RecordedGap:
    offsets = OffsetRange(start_offset=start, end_offset=end)
    return RecordedGap(offsets=offsets, reason=reason, recorded_ms=0)


@pytest.mark.parametrize(
    ("offset", "location"),
    [
        (99, "below_log_start"),
        (100, "remote"),
        (299, "remote"),
        (300, "both"),
        (599, "both"),
        (600, "local"),
        (1049, "local"),
        (1050, "above_high_watermark"),
    ],
)
def test_record_when_asked_for_then_where_it_is(offset: int, location: str) -> None:
    found = where(TIERED.view(), offset)
    assert (found.location, found.leader_epoch) == (location, 0)


@pytest.mark.parametrize(
    ("offset", "location", "reason"),
    [
        (99, "remote", None),
        (100, "gap", GapReason.SHED),
        (150, "gap", GapReason.EXTERNAL_START),
        (200, "remote", None),
    ],
)
def test_record_when_lost_before_it_was_stored_then_the_gap_that_it_is_in(
    offset: int, location: str, reason: GapReason | None
) -> None:
    """R6, scenario 83."""
    stored = (*stored_up_to(100), *stored_up_to(300)[2:])
    view = Given(segments=stored, local_start=300, trimmed=300).view()
    gaps = (gap(100, 150, GapReason.SHED), gap(150, 200, GapReason.EXTERNAL_START))

    found = where(
        replace(view, state=replace(view.state, recorded_gaps=gaps, gaps_epoch=NEWEST_EPOCH)),
        offset,
    )

    assert (found.location, found.gap and found.gap.reason) == (location, reason)


def test_record_when_stored_then_its_segment_and_objects_are_named() -> None:
    (holding,) = where(TIERED.view(), 250).segments
    assert holding.offsets.start_offset == 200
    assert holding.object_keys == ("200.log",)


def test_record_when_its_segment_is_of_another_history_then_it_is_not_readable() -> None:
    """Scenario 7: records that an unclean election cut off are shown, but not as stored."""
    cut_off = remote(600, 700, epochs=Lineage.of((7, 600)), number=9)
    found = where(replace(TIERED, segments=(*TIERED.segments, cut_off)).view(), 650)
    assert found.location == "local"
    assert [each.readable for each in found.segments] == [None]


def test_record_when_its_copy_has_not_finished_then_it_is_local_only() -> None:
    started = remote(600, 700, state=SegmentState.COPY_SEGMENT_STARTED)
    found = where(replace(TIERED, segments=(*TIERED.segments, started)).view(), 650)
    assert found.location == "local"
    assert found.segments[0].state == "COPY_SEGMENT_STARTED"


def test_record_when_in_no_tier_and_in_no_gap_then_nowhere() -> None:
    """Scenario 80: a hole is shown as a hole."""
    holed = replace(TIERED, segments=stored_up_to(200))
    assert where(holed.view(), 250).location == "nowhere"


@pytest.mark.parametrize(
    ("given_", "offset", "expected"),
    [
        (TIERED, 250, ("trimmed", "")),
        (TIERED, 1049, ("active_segment", "")),
        (TIERED, 1050, ("not_committed", "")),
        (TIERED, 350, ("due", "")),
        (TIERED, 650, ("blocked", "not_stored")),
        (
            replace(TIERED, policy=policy(local_retention_ms=2 * HOUR_MS)),
            350,
            ("within_local_retention", ""),
        ),
        (
            replace(TIERED, policy=policy(state=PolicyState.DISABLING)),
            350,
            ("blocked", "policy_not_active"),
        ),
        (
            replace(TIERED, limits=PolicyLimits(local_trim_min_age_ms=2 * HOUR_MS)),
            450,
            ("blocked", "younger_than_min_age"),
        ),
    ],
)
def test_local_copy_when_asked_for_then_the_gates_own_reason(
    given_: Given, offset: int, expected: tuple[str, str]
) -> None:
    """Scenario 79: the explanation calls the same function as the trim."""
    found = local_copy(given_.view(), offset, None)
    assert (found.state, found.reason) == expected


def test_local_copy_when_share_groups_held_the_last_trim_then_says_so() -> None:
    """R8."""
    blocked = Blocked(reason="share_group", values={"group": "readers"})
    found = local_copy(TIERED.view(), 350, blocked)
    assert (found.state, found.reason, found.values) == ("blocked", "share_group", blocked.values)


@given(
    stored_to=st.integers(3, 10),
    high_watermark=st.integers(300, 1050),
    margin_bytes=st.sampled_from([0, 1500]),
    offset=st.integers(300, 999),
)
def test_local_copy_when_said_to_be_due_then_the_gate_lets_it_go_and_only_then(
    stored_to: int, high_watermark: int, margin_bytes: int, offset: int
) -> None:
    view = replace(
        TIERED,
        segments=stored_up_to(100 * stored_to),
        high_watermark=high_watermark,
        limits=PolicyLimits(local_trim_min_age_ms=0, local_trim_margin_bytes=margin_bytes),
    ).view()
    goes_to = decide_trim(view).offset or 0
    assert (local_copy(view, offset, None).state == "due") is (offset < goes_to)
