"""Records that share groups have not finished are not trimmed (R8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm.facts.share_group_start import HiddenShareGroupsError, ShareGroupStart
from rlm.policy.share_groups import limit_by_share_groups
from rlm.policy.trim_gate import TrimDecision, decide_trim
from rsm.segment.errors import RetriableError, TieredStorageError
from tests.unit.rlm.policy.views import Given, stored_up_to

ALL_STORED = Given(segments=stored_up_to(1000))


def _decide(start: int | TieredStorageError | None, given: Given = ALL_STORED) -> TrimDecision:
    view = given.view()
    known = ShareGroupStart(group="sharers", offset=start) if isinstance(start, int) else start
    return limit_by_share_groups(view, decide_trim(view), known)


def _reason(decision: TrimDecision) -> str | None:
    return None if decision.blocked is None else decision.blocked.reason


def test_trim_when_no_group_reads_then_as_decided() -> None:
    assert _decide(None) == decide_trim(ALL_STORED.view())


def test_trim_when_a_group_starts_at_its_end_then_as_decided() -> None:
    """R8."""
    assert _decide(900) == decide_trim(ALL_STORED.view())


def test_trim_when_a_group_starts_inside_a_segment_then_that_segment_stays() -> None:
    """R8, R3: a trim ends at a segment's base."""
    decision = _decide(550)
    assert decision.offset == 500
    assert decision.blocked is not None
    assert decision.blocked.reason == "share_group"
    assert decision.blocked.values == {"group": "sharers", "group_start_offset": 550}


def test_trim_when_a_group_starts_at_a_base_then_all_below_it_is_trimmed() -> None:
    assert _decide(500).offset == 500


def test_trim_when_a_group_starts_in_the_first_segment_that_is_left_then_nothing() -> None:
    """The broker has not removed the files below yet."""
    decision = _decide(250, Given(segments=stored_up_to(1000), local_start=200))
    assert (decision.offset, _reason(decision)) == (None, "share_group")


def test_trim_when_all_of_it_has_expired_then_as_decided() -> None:
    """R8: expiry is no trim."""
    expired = Given(segments=stored_up_to(1000), log_start=900)
    free = decide_trim(expired.view())
    assert free.offset == 900
    assert _decide(120, expired) == free


def test_trim_when_a_group_starts_right_above_what_has_expired_then_only_that_is_trimmed() -> None:
    decision = _decide(350, Given(segments=stored_up_to(1000), log_start=300))
    assert (decision.offset, decision.rule) == (300, "below log start 300")


def test_trim_when_a_group_starts_inside_the_first_segment_then_nothing() -> None:
    """R8."""
    decision = _decide(99)
    assert (decision.offset, _reason(decision)) == (None, "share_group")


def test_trim_when_a_group_has_acknowledged_nothing_then_nothing() -> None:
    """R8."""
    decision = _decide(-1)
    assert (decision.offset, _reason(decision)) == (None, "share_group")


def test_trim_when_a_group_starts_below_the_local_start_then_nothing() -> None:
    """R8: somebody else moved the local start."""
    decision = _decide(50, Given(segments=stored_up_to(1000), local_start=200))
    assert (decision.offset, _reason(decision)) == (None, "share_group")


def test_trim_when_groups_are_not_known_then_nothing() -> None:
    """R8: a failed request to a coordinator loses no records."""
    decision = _decide(RetriableError("missing rights on the group"))
    assert (decision.offset, _reason(decision)) == (None, "share_groups_unknown")
    assert decision.blocked is not None
    assert decision.blocked.values == {"problem": "missing rights on the group"}


def test_trim_when_groups_may_be_hidden_then_nothing_and_a_reason_of_its_own() -> None:
    """R8: the status reports the reason, and an operator can end the block."""
    decision = _decide(HiddenShareGroupsError("lacks Describe"))
    assert (decision.offset, _reason(decision)) == (None, "share_groups_hidden")


def test_trim_when_data_has_expired_then_it_is_trimmed_despite_readers() -> None:
    """R8: expiry is no trim."""
    expired = Given(segments=stored_up_to(1000), log_start=350)
    decision = _decide(120, expired)
    assert (decision.offset, decision.rule, _reason(decision)) == (
        350,
        "below log start 350",
        "share_group",
    )
    unknown = _decide(RetriableError("away"), expired)
    assert (unknown.offset, _reason(unknown)) == (350, "share_groups_unknown")


@given(start=st.integers(-1, 1100), local_start=st.integers(0, 9), log_start=st.integers(0, 1000))
def test_trim_when_a_group_starts_anywhere_then_never_past_it_and_at_a_base(
    start: int, local_start: int, log_start: int
) -> None:
    """R8, R3."""
    given = Given(segments=stored_up_to(1000), local_start=local_start * 100, log_start=log_start)
    free, decision = decide_trim(given.view()).offset, _decide(start, given)
    if decision.offset is None or decision.offset == log_start:
        return
    assert free is not None
    assert local_start * 100 < decision.offset <= min(free, start)
    assert decision.offset % 100 == 0
