"""R10, scenario 20: the committed part of an idle active segment is copied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.facts.local_log import CommittedTail, RolledSegment
from rlm.policy.candidates import copy_blocked, copy_candidates, lag
from rlm.policy.retention import expiry_cut
from rlm.policy.view import AttemptFailure, PolicyLimits
from rlmm.events.policy import PolicyState
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    Given,
    local,
    policy,
    remote,
    stored_up_to,
)

IDLE = Given(
    segments=stored_up_to(1000),
    limits=PolicyLimits(local_trim_min_age_ms=0, idle_copy_ms=HOUR_MS),
    idle_ms=HOUR_MS,
)


def ranges(given: Given) -> list[tuple[int, int]]:
    segments = copy_candidates(given.view())
    return [(s.offsets.start_offset, s.offsets.end_offset) for s in segments]


def test_active_segment_when_idle_for_long_then_its_committed_part_is_copied() -> None:
    assert copy_candidates(IDLE.view()) == (
        CommittedTail(
            file_base_offset=1000,
            offsets=replace(local(1000, 1050).offsets),
            size_bytes=500,
        ),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"idle_ms": HOUR_MS - 1},
        {"idle_ms": -HOUR_MS},
        {"limits": PolicyLimits(local_trim_min_age_ms=0)},
        {"high_watermark": 1000},
        {"last_stable_offset": 1000},
        {"segments": (*stored_up_to(1000), remote(1000, 1050))},
        {"policy": policy(state=PolicyState.DISABLING)},
        {"policy": policy(copy_lag_ms=2 * HOUR_MS)},
        {"owner": None},
    ],
)
def test_active_segment_when_not_idle_not_stable_or_stored_then_nothing(
    changes: dict[str, object],
) -> None:
    """Scenarios 1, 2, 3, 26: each reason for which an idle part is not copied."""
    given = replace(IDLE, **changes)  # type: ignore[arg-type]  # field names are the tests' own
    assert ranges(given) == []


def test_active_segment_when_no_idle_time_is_asked_for_then_copied_at_once() -> None:
    at_once = PolicyLimits(local_trim_min_age_ms=0, idle_copy_ms=0)
    assert ranges(replace(IDLE, limits=at_once, idle_ms=0)) == [(1000, 1050)]


def test_active_segment_when_a_transaction_is_open_then_copied_to_its_begin() -> None:
    """Scenario 2."""
    assert ranges(replace(IDLE, last_stable_offset=1020)) == [(1000, 1020)]


def test_active_segment_when_copied_before_then_from_there_on() -> None:
    given = replace(IDLE, segments=(*stored_up_to(1000), remote(1000, 1030)))
    assert ranges(given) == [(1030, 1050)]


def test_active_segment_when_rolled_ones_are_not_stored_then_those_come_first() -> None:
    """Copies are made in order: there is never a hole below stored segments."""
    assert ranges(replace(IDLE, segments=stored_up_to(800))) == [(800, 900), (900, 1000)]


def test_active_segment_when_the_log_begins_inside_it_then_from_there_on() -> None:
    """R10: expired records of the file are not stored again."""
    given = replace(IDLE, segments=(), local_start=1020, log_start=1020)
    assert ranges(given) == [(1020, 1050)]


def test_rolled_segment_when_its_begin_is_stored_then_the_rest_is_copied() -> None:
    """R10: the next part begins at the end of the part before."""
    given = replace(IDLE, segments=(*stored_up_to(900), remote(900, 930)))
    (rest,) = copy_candidates(given.view())
    assert (rest.offsets.start_offset, rest.offsets.end_offset) == (930, 1000)
    assert (rest.file_base_offset, type(rest)) == (900, RolledSegment)


def test_rolled_segment_when_the_log_begins_inside_it_then_copied_whole() -> None:
    """Scenario 4: the log may begin in the middle of a batch."""
    given = replace(IDLE, segments=(), local_start=950)
    assert ranges(given) == [(900, 1000)]


def test_lag_when_only_an_idle_part_is_left_then_zero() -> None:
    """As in Kafka, the lag counts rolled segments only."""
    found = lag(IDLE.view())
    assert (found.segments, found.bytes) == (0, 0)


def test_blocked_when_the_idle_part_can_not_be_copied_then_reported() -> None:
    failure = AttemptFailure(error="broken", cause="broken", is_corrupt=True, attempts=2)
    blocked = copy_blocked(replace(IDLE.view(), copy_failure=failure))
    assert blocked is not None
    assert (blocked.reason, blocked.values["base_offset"]) == ("corrupt", 1000)


def test_expiry_by_size_when_the_active_segment_is_stored_then_its_bytes_count_once() -> None:
    """Scenario 68: one stored segment of 1000 bytes in a file of 1500 leaves 500 to count."""
    view = replace(IDLE, segments=(*stored_up_to(1000), remote(1000, 1050))).view()
    view = replace(
        view,
        local=replace(view.local, active_size_bytes=1500),
        policy=policy(retention_bytes=11_500),
    )
    assert expiry_cut(view) is None


def test_expiry_by_time_when_the_stored_part_is_too_old_then_the_log_starts_after_it() -> None:
    """R10: the stored part of the active segment expires like any other segment."""
    old = remote(1000, 1050, age_ms=10 * HOUR_MS)
    given = replace(
        IDLE, rolled=(local(900, 1000),), segments=(remote(900, 1000, age_ms=10 * HOUR_MS), old)
    )
    cut = expiry_cut(
        replace(given, log_start=900, local_start=900, policy=policy(retention_ms=HOUR_MS)).view()
    )
    assert cut is not None
    assert cut.offset == 1050
