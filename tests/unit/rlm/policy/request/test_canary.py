from __future__ import annotations

import pytest

from rlm.policy.request.canary import abandoned_canaries, canary_topic, missing_records

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


def test_abandoned_canaries_when_listed_then_only_those_of_old_checks_are_found() -> None:
    old = f"rlm-canary-{NOW_MS - HOUR_MS - 1}-a1"
    running = f"rlm-canary-{NOW_MS - HOUR_MS}-b2"
    users = ("orders", "rlm-canary-", "rlm-canary-x-1", f"rlm-canary-{NOW_MS - 2 * HOUR_MS}-")

    assert abandoned_canaries((running, old, *users), NOW_MS) == (old,)


def test_own_canary_when_it_is_an_hour_old_then_its_name_is_found_again() -> None:
    topic = canary_topic(
        (1,), unique="c3", now_ms=NOW_MS, rounds=4, max_replicas=3, trim_min_age_ms=0
    )

    assert abandoned_canaries((topic.name,), NOW_MS + HOUR_MS + 1) == (topic.name,)


@pytest.mark.parametrize(("max_replicas", "expected"), [(0, 1), (1, 1), (2, 2), (9, 3)])
def test_canary_topic_when_replicated_then_each_broker_leads_one_partition(
    max_replicas: int, expected: int
) -> None:
    topic = canary_topic(
        (7, 3, 5), unique="d", now_ms=NOW_MS, rounds=4, max_replicas=max_replicas, trim_min_age_ms=0
    )

    assert [each[0] for each in topic.replicas] == list(topic.leaders) == [3, 5, 7]
    assert {len(set(each)) for each in topic.replicas} == {expected}


def test_canary_topic_when_the_minimum_age_is_long_then_records_are_older_and_retained() -> None:
    day_ms = 24 * HOUR_MS
    topic = canary_topic(
        (1,), unique="e", now_ms=NOW_MS, rounds=9, max_replicas=1, trim_min_age_ms=day_ms
    )

    ages_ms = [NOW_MS - topic.round(number, NOW_MS)[0].timestamp_ms for number in range(9)]
    assert min(ages_ms) > day_ms
    assert max(ages_ms) < topic.retention_ms


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({(0, 0): b"a", (1, 0): b"b"}, ""),
        ({(0, 0): b"a", (1, 0): b"b", (1, 1): b"unconfirmed"}, ""),
        ({(0, 0): b"a"}, "cannot find 1 of 2 records (partitions=1)"),
        ({(0, 0): b"x", (1, 0): b"b"}, "a record has other bytes (partition=0 offset=0)"),
    ],
)
def test_missing_records_when_compared_then_differences_are_named(
    found: dict[tuple[int, int], bytes], problem: str
) -> None:
    assert missing_records({(0, 0): b"a", (1, 0): b"b"}, found) == problem
