"""Which rolled segments a copy lag delays, and which lags a policy may have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.candidates import copy_blocked, copy_candidates, offload_end_offset
from rlmm.events.policy import CopyLagSince, PolicyState
from rsm.segment.errors import InvalidConfigError
from tests.unit.rlm.policy.topic.test_topic_policy import enabled
from tests.unit.rlm.policy.views import HOUR_MS, NOW_MS, Given, local, policy

# Ten segments of 1000 bytes, the newest an hour old, each an hour older than the next; 500 active.
AGED = tuple(local(i * 100, i * 100 + 100, age_ms=(10 - i) * HOUR_MS) for i in range(10))


def copied(lag_ms: int, lag_bytes: int, **changes: int) -> int:
    """Return the number of segments that are copied now."""
    given = policy(copy_lag_ms=lag_ms, copy_lag_bytes=lag_bytes, **changes)
    return len(copy_candidates(Given(rolled=AGED, policy=given).view()))


@pytest.mark.parametrize(
    ("lag_ms", "lag_bytes", "count"),
    [
        (0, 0, 10),
        (0, -1, 10),
        (5 * HOUR_MS, 0, 10),
        (5 * HOUR_MS, 1 << 40, 6),
        (5 * HOUR_MS + 1, 1 << 40, 5),
        (100 * HOUR_MS, 3_500, 7),
        (100 * HOUR_MS, 3_501, 6),
        (9 * HOUR_MS, 3_500, 7),
        (5 * HOUR_MS, 8_500, 6),
    ],
)
def test_candidates_when_lags_are_set_then_those_over_either_one(
    lag_ms: int, lag_bytes: int, count: int
) -> None:
    """Scenario 26; KIP-1241: a lag of 0 copies at once, else the first passed lag decides."""
    assert copied(lag_ms, lag_bytes, local_retention_ms=-1) == count


def test_candidates_when_lag_is_that_of_local_retention_then_in_time_for_it() -> None:
    """Scenario 26: only segments past the local retention are copied."""
    assert copied(-1, -1, local_retention_ms=4 * HOUR_MS, local_retention_bytes=-1) == 7
    assert copied(-1, -1, local_retention_ms=-1, local_retention_bytes=2_500) == 8


@pytest.mark.parametrize(
    ("since", "rolled_age_ms", "count"),
    [
        (CopyLagSince.ROLL, HOUR_MS - 1, 0),
        (CopyLagSince.ROLL, HOUR_MS, 1),
        (CopyLagSince.NEWEST_RECORD, HOUR_MS - 1, 1),
    ],
)
def test_candidates_when_the_lag_counts_from_the_roll_then_whatever_the_records_say(
    since: CopyLagSince, rolled_age_ms: int, count: int
) -> None:
    """PIP-17: a segment is offloaded when it has been sealed for offloadTimeInMinutes."""
    given = policy(
        copy_lag_ms=HOUR_MS, copy_lag_bytes=-1, local_retention_ms=-1, copy_lag_since=since
    )
    old = replace(local(0, 100, age_ms=90 * HOUR_MS), rolled_ms=NOW_MS - rolled_age_ms)

    assert len(copy_candidates(Given(rolled=(old,), policy=given).view())) == count


def test_candidates_when_a_timestamp_lies_in_the_future_then_copied_all_the_same() -> None:
    given = policy(copy_lag_ms=HOUR_MS, copy_lag_bytes=-1, local_retention_ms=-1)
    ahead = (local(0, 100, age_ms=-HOUR_MS),)

    assert len(copy_candidates(Given(rolled=ahead, policy=given).view())) == 1


@pytest.mark.parametrize(("lag_ms", "count"), [(0, 1), (1, 0)])
def test_candidates_when_a_timestamp_is_current_then_only_no_lag_copies_it(
    lag_ms: int, count: int
) -> None:
    given = policy(copy_lag_ms=lag_ms, copy_lag_bytes=-1, local_retention_ms=-1)
    written_now = (local(0, 100, age_ms=0),)

    assert len(copy_candidates(Given(rolled=written_now, policy=given).view())) == count


@pytest.mark.parametrize(("lag_ms", "lag_bytes"), [(0, 1 << 40), (1, 1 << 40), (-1, 0), (-1, 1)])
def test_candidates_when_a_lag_is_as_small_as_can_be_then_all_are_copied(
    lag_ms: int, lag_bytes: int
) -> None:
    assert copied(lag_ms, lag_bytes, local_retention_ms=-1) == 10


@pytest.mark.parametrize(("requested", "count"), [(199, 1), (200, 2), (299, 2)])
def test_candidates_when_offload_is_requested_then_those_wholly_before_the_position(
    requested: int, count: int
) -> None:
    """PIP-17's asyncOffloadPrefix: requested segments are copied at any age, others wait."""
    waiting = policy(copy_lag_ms=100 * HOUR_MS, copy_lag_bytes=-1, local_retention_ms=-1)
    view = Given(rolled=AGED, policy=waiting).view()
    asked = replace(view, state=replace(view.state, offload_requested_offset=requested))

    assert len(copy_candidates(asked)) == count
    assert offload_end_offset(asked) == 100 * count


@pytest.mark.parametrize("requested", [None, 0])
def test_candidates_when_no_offload_is_requested_then_even_the_first_offset_waits(
    requested: int | None,
) -> None:
    """PIP-17: a segment with only offset 0 is wholly before position 1, and before no lower one."""
    waiting = policy(copy_lag_ms=100 * HOUR_MS, copy_lag_bytes=-1, local_retention_ms=-1)
    view = Given(rolled=(local(0, 1, age_ms=HOUR_MS),), policy=waiting).view()
    asked = replace(view, state=replace(view.state, offload_requested_offset=requested))

    assert len(copy_candidates(asked)) == 0
    assert offload_end_offset(asked) == 0


def test_candidates_when_tiering_ends_then_none_waits() -> None:
    """R9: all that is rolled is stored before the broker's own retention is back."""
    ending = policy(copy_lag_ms=100 * HOUR_MS, copy_lag_bytes=-1, state=PolicyState.DISABLING)

    assert len(copy_candidates(Given(rolled=AGED, policy=ending).view())) == 10


def test_copy_blocked_when_a_lag_lets_it_wait_then_says_so() -> None:
    waiting = policy(copy_lag_ms=100 * HOUR_MS, copy_lag_bytes=-1, local_retention_ms=-1)

    blocked = copy_blocked(Given(rolled=AGED, policy=waiting).view())

    assert blocked is not None
    assert (blocked.reason, blocked.values["age_ms"]) == ("copy_lag", 10 * HOUR_MS)


def test_policy_when_one_lag_is_given_then_the_other_no_longer_copies_at_once() -> None:
    by_time = enabled(copy_lag_ms=60_000)
    by_size = enabled(copy_lag_bytes=1 << 20)

    assert (by_time.copy_lag_ms, by_time.copy_lag_bytes) == (60_000, -1)
    assert (by_size.copy_lag_ms, by_size.copy_lag_bytes) == (-1, 1 << 20)
    assert enabled(by_time, copy_lag_ms=0).copy_lag_ms == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"retention_ms": 1000, "copy_lag_ms": 1000}, "remote.copy.lag.ms < retention.ms"),
        ({"retention_bytes": 10, "copy_lag_bytes": 11}, "remote.copy.lag.bytes < retention.bytes"),
        (
            {"local_retention_ms": 500, "copy_lag_ms": 501},
            "lag.ms <= local.retention.ms, remote.copy.lag.ms=501, local.retention.ms=500",
        ),
        (
            {"local_retention_bytes": 5, "copy_lag_bytes": 6},
            "remote.copy.lag.bytes <= local.retention.bytes",
        ),
        ({"copy_lag_ms": -2}, "-1 <= remote.copy.lag.ms"),
        ({"local_deletion_lag_ms": -2}, "-1 <= local.deletion.lag.ms"),
        ({"retention_ms": -1, "copy_lag_ms": -1}, "nothing would ever be copied"),
    ],
)
def test_policy_when_a_lag_breaks_a_rule_then_refused_with_rule_and_values(
    flags: dict[str, int], words: str
) -> None:
    """KIP-1241 and PIP-17: a segment is stored before a retention deletes it."""
    with pytest.raises(InvalidConfigError) as refused:
        enabled(**flags)  # type: ignore[arg-type]  # flags of numbers only

    assert words in str(refused.value)
    assert refused.value.context["advice"]
