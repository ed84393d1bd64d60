"""Which data of a partition may be shed while the store accepts nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.shedding import (
    SheddableRange,
    choose_shed,
    gaps_of_shed,
    released_but_there_bytes,
    sheddable,
)
from rlm.policy.view import OUTAGE_ATTEMPTS, AttemptFailure, PartitionView, PolicyLimits
from rlmm.events.pause import PausableTask
from rlmm.events.policy import OutagePolicy
from rlmm.state.gaps import GapReason
from tests.metadata_builder import anomaly
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    NOW_MS,
    SEGMENT_BYTES,
    TIP,
    Given,
    local,
    policy,
    stored_up_to,
)

STORED = stored_up_to(500)


def in_outage(given: Given) -> PartitionView:
    shed = policy(outage_policy=OutagePolicy.SHED_OLDEST)
    return replace(replace(given, policy=shed).view(), is_store_reachable=False)


def end_of(given: Given) -> int | None:
    found = sheddable(in_outage(given))
    return None if found is None else found.segments[-1].offsets.end_offset


def damaged(given: Given, number: int) -> Given:
    return replace(given, anomalies=(anomaly(STORED[number].metadata.segment_id.id.int),))


def test_sheddable_when_nothing_is_damaged_then_all_but_the_newest_may_go() -> None:
    assert end_of(Given(segments=STORED)) == 900


@pytest.mark.parametrize("number", [0, 2, 4])
def test_sheddable_when_a_stored_copy_is_damaged_then_the_brokers_stays(number: int) -> None:
    """The manager needs the broker's copy for the repair when the store is back."""
    assert end_of(damaged(Given(segments=STORED), number)) is None


def test_sheddable_when_the_damaged_copy_is_behind_a_hole_then_stops_before_it() -> None:
    """[200, 300) is not stored and may be shed; [300, 400) is whole on the broker only."""
    with_hole = Given(segments=(*STORED[:2], *STORED[3:]))

    assert end_of(damaged(with_hole, 3)) == 300


def test_sheddable_when_one_file_holds_stored_and_unstored_records_then_damage_keeps_it() -> None:
    """A former leader rolled its segments at other offsets."""
    rolled = (
        local(0, 550),
        local(550, 600),
        *(local(start, start + 100) for start in range(600, 1000, 100)),
    )
    given = Given(segments=STORED, rolled=rolled)

    assert end_of(given) == 900
    assert end_of(damaged(given, 4)) is None


def test_sheddable_when_all_that_may_go_is_stored_then_nothing_is_given_up() -> None:
    assert sheddable(in_outage(Given(segments=stored_up_to(900)))) is None
    assert end_of(Given(segments=stored_up_to(800))) == 900


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"policy": policy(outage_policy=OutagePolicy.HOLD)}, id="the policy is hold"),
        pytest.param({"is_store_reachable": True}, id="the store takes copies"),
        pytest.param({"paused": frozenset({PausableTask.COPY})}, id="copies are paused"),
        pytest.param({"paused": frozenset({PausableTask.TRIM})}, id="trims are paused"),
    ],
)
def test_sheddable_when_this_is_no_outage_or_nothing_is_trimmed_then_none(
    changes: dict[str, object],
) -> None:
    view = in_outage(Given(segments=STORED))

    assert sheddable(view) is not None
    assert sheddable(replace(view, **changes)) is None  # type: ignore[arg-type]  # field names are the test's own


@pytest.mark.parametrize(
    ("is_corrupt", "is_final", "may_go"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_sheddable_when_the_segment_itself_fails_then_that_is_no_outage(
    *, is_corrupt: bool, is_final: bool, may_go: bool
) -> None:
    failure = AttemptFailure(
        error="refused", cause="refused", is_corrupt=is_corrupt, attempts=OUTAGE_ATTEMPTS
    )
    view = replace(in_outage(Given(segments=STORED)), is_store_reachable=True)

    found = sheddable(replace(view, copy_failure=replace(failure, is_final=is_final)))

    assert (found is not None) is may_go


def test_sheddable_when_a_plug_in_reports_the_outage_then_nothing_is_given_up() -> None:
    """Scenario 121."""
    view = in_outage(Given(segments=STORED))

    assert sheddable(replace(view, limits=replace(view.limits, can_shed=False))) is None


def test_sheddable_when_the_log_begins_higher_then_only_what_the_broker_still_has() -> None:
    found = sheddable(in_outage(Given(segments=STORED, local_start=200, trimmed=200)))

    assert found is not None
    assert found.topic_id_partition == TIP
    assert [each.offsets.start_offset for each in found.segments] == list(range(200, 900, 100))


@pytest.mark.parametrize(("stable_end", "end"), [(599, None), (600, 600), (699, 600)])
def test_sheddable_when_records_may_be_rolled_back_then_ends_below_them(
    stable_end: int, end: int | None
) -> None:
    given = Given(segments=STORED, last_stable_offset=stable_end)

    assert end_of(given) == end


@pytest.mark.parametrize(("age_ms", "end"), [(HOUR_MS, 900), (HOUR_MS - 1, 700)])
def test_sheddable_when_a_segment_is_too_young_then_ends_below_it(age_ms: int, end: int) -> None:
    rolled = (
        *(local(start, start + 100) for start in range(0, 700, 100)),
        local(700, 800, age_ms=age_ms),
        *(local(start, start + 100) for start in range(800, 1000, 100)),
    )
    limits = PolicyLimits(local_trim_min_age_ms=HOUR_MS)

    assert end_of(Given(segments=STORED, rolled=rolled, limits=limits)) == end


def test_sheddable_when_a_stored_segment_is_kept_then_nothing_above_it_is_given_up() -> None:
    limits = PolicyLimits(local_trim_min_age_ms=0, local_trim_margin_bytes=1)

    assert end_of(Given(segments=STORED, limits=limits)) is None


@pytest.mark.parametrize(("local_start", "count"), [(0, 0), (299, 2), (300, 3)])
def test_released_when_the_broker_has_yet_to_remove_files_then_their_bytes(
    local_start: int, count: int
) -> None:
    assert released_but_there_bytes(Given(local_start=local_start).view()) == count * SEGMENT_BYTES


def candidate(partition: int, *ages_ms: int) -> SheddableRange:
    """Return a candidate with segments of 100 offsets and these ages, the oldest first."""
    segments = (local(n * 100, n * 100 + 100, age_ms=age) for n, age in enumerate(ages_ms))
    tip = replace(TIP, partition=partition)
    return SheddableRange(topic_id_partition=tip, segments=tuple(segments))


@pytest.mark.parametrize(
    ("excess_bytes", "ends"),
    [
        pytest.param(0, {}, id="the disk is below its threshold"),
        pytest.param(1, {1: 100}, id="the oldest segment"),
        pytest.param(2 * SEGMENT_BYTES, {1: 100, 2: 100}, id="no more than it takes"),
        pytest.param(2 * SEGMENT_BYTES + 1, {1: 200, 2: 100}, id="a second one"),
        pytest.param(9 * SEGMENT_BYTES, {1: 200, 2: 200}, id="all there is, if that is too little"),
    ],
)
def test_shed_when_disks_are_full_then_the_oldest_data_of_all_partitions_is_shed_first(
    excess_bytes: int, ends: dict[int, int]
) -> None:
    candidates = iter((candidate(2, 90, 70), candidate(1, 100, 80)))

    found = choose_shed(candidates, excess_bytes)

    assert {tip.partition: end for tip, end in found.items()} == ends


def test_shed_when_a_partition_has_several_old_segments_then_they_go_one_after_the_other() -> None:
    found = choose_shed((candidate(1, 100, 95, 10), candidate(2, 90)), 2 * SEGMENT_BYTES)

    assert {tip.partition: end for tip, end in found.items()} == {1: 200}


def test_shed_when_two_are_equally_old_then_both_go_where_both_have_to() -> None:
    found = choose_shed((candidate(1, 90, 90), candidate(2, 90)), 3 * SEGMENT_BYTES)

    assert {tip.partition: end for tip, end in found.items()} == {1: 200, 2: 100}


def test_gaps_of_shed_when_some_of_it_is_stored_then_the_rest_is_a_gap() -> None:
    view = in_outage(Given(segments=STORED))

    gaps = gaps_of_shed(view, 700)

    assert gaps is not None
    assert [(g.offsets.start_offset, g.offsets.end_offset) for g in gaps] == [(500, 700)]
    assert (gaps[0].reason, gaps[0].recorded_ms) == (GapReason.SHED, NOW_MS)
    assert gaps_of_shed(view, 500) is None


@pytest.mark.parametrize("is_unexpected", [False, True])
def test_sheddable_when_copies_fail_by_an_unexpected_error_then_that_is_no_outage(
    *, is_unexpected: bool
) -> None:
    """**Data loss:** the store may be well, and the records could still be stored."""
    failure = AttemptFailure(
        error="?", cause="?", is_corrupt=False, attempts=100, is_unexpected=is_unexpected
    )
    reachable = replace(in_outage(Given(segments=STORED)), is_store_reachable=True)

    found = sheddable(replace(reachable, copy_failure=failure))

    assert (found is None) == is_unexpected
