"""Where the rules of the trim gate begin and end, to the offset, byte and millisecond."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.trim_gate import decide_trim, segment_blocked
from rlm.policy.view import PolicyLimits
from rlmm.events.pause import PausableTask
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    NOW_MS,
    THEM,
    Given,
    local,
    policy,
    remote,
    stored_up_to,
)

ALL_STORED = Given(segments=stored_up_to(1000))
OTHERS_STORED = stored_up_to(1000)[1:]


def _decided(given: Given) -> tuple[int | None, str | None]:
    decided = decide_trim(given.view())
    return decided.offset, None if decided.blocked is None else decided.blocked.reason


def test_trim_when_nothing_is_over_retention_then_no_rule_is_asked() -> None:
    given = replace(ALL_STORED, owner=THEM, policy=policy(local_retention_ms=2 * HOUR_MS))
    assert _decided(given) == (None, None)


@pytest.mark.parametrize(("min_age_ms", "expected"), [(HOUR_MS, 900), (HOUR_MS + 1, None)])
def test_trim_when_segment_is_exactly_of_the_min_age_then_trimmed(
    min_age_ms: int, expected: int | None
) -> None:
    limits = PolicyLimits(local_trim_min_age_ms=min_age_ms)
    reason = "newest_rolled_segment" if expected else "younger_than_min_age"
    assert _decided(replace(ALL_STORED, limits=limits)) == (expected, reason)


@pytest.mark.parametrize(("margin_bytes", "expected"), [(2000, 800), (2001, 700)])
def test_trim_when_exactly_the_margin_is_left_then_trimmed(
    margin_bytes: int, expected: int
) -> None:
    limits = PolicyLimits(local_trim_min_age_ms=0, local_trim_margin_bytes=margin_bytes)
    assert _decided(replace(ALL_STORED, limits=limits)) == (expected, "within_margin")


def test_trim_when_a_segment_ends_at_the_local_start_then_its_age_counts_no_longer() -> None:
    """The broker moves its log start first, and deletes the files below later."""
    rolled = (local(0, 100, age_ms=0), *(local(s, s + 100) for s in range(100, 1000, 100)))
    given = Given(
        rolled=rolled,
        segments=OTHERS_STORED,
        local_start=100,
        trimmed=100,
        policy=policy(local_retention_ms=HOUR_MS // 2),
    )
    assert _decided(given) == (900, "newest_rolled_segment")


def test_trim_when_only_the_first_offset_is_expired_then_it_is_trimmed() -> None:
    kept = policy(local_retention_ms=-1)
    assert _decided(replace(ALL_STORED, policy=kept, log_start=1)) == (1, None)


@pytest.mark.parametrize(
    ("log_start", "rule"),
    [
        (900, f"local.retention.ms=0 measured={HOUR_MS} stored_end=1000"),
        (901, "below log start 901"),
    ],
)
def test_trim_when_retention_reaches_the_log_start_then_it_is_the_rule(
    log_start: int, rule: str
) -> None:
    decided = decide_trim(replace(ALL_STORED, log_start=log_start).view())
    assert (decided.offset, decided.rule) == (log_start, rule)


def test_trim_when_log_start_is_the_local_start_then_nothing_is_expired() -> None:
    given = replace(
        ALL_STORED,
        policy=policy(local_retention_ms=-1),
        local_start=250,
        trimmed=250,
        log_start=250,
    )
    assert _decided(given) == (None, None)


def test_trim_when_no_log_start_is_recorded_then_blocked() -> None:
    """The local start must not move before the log start is on record."""
    assert _decided(replace(ALL_STORED, log_start=None)) == (None, "log_start_not_recorded")


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (PausableTask.TRIM, (None, "paused")),
        (PausableTask.COPY, (900, "newest_rolled_segment")),
    ],
)
def test_trim_when_paused_then_blocked(
    task: PausableTask, expected: tuple[int | None, str]
) -> None:
    decided = decide_trim(replace(ALL_STORED.view(), paused=frozenset({task})))

    assert decided.blocked is not None
    assert (decided.offset, decided.blocked.reason) == expected


def test_trim_when_a_lost_range_is_not_on_record_then_blocked() -> None:
    """A trim would hide the start of the external deletion."""
    given = replace(ALL_STORED, segments=OTHERS_STORED[1:], local_start=200, trimmed=0)

    blocked = decide_trim(given.view()).blocked

    assert _decided(given) == (None, "gap_not_recorded")
    assert blocked is not None
    assert blocked.values == {"local_start_offset": 200}


@pytest.mark.parametrize(
    ("high_watermark", "expected"), [(100, None), (99, "above_high_watermark")]
)
def test_segment_when_it_ends_above_the_high_watermark_then_blocked(
    high_watermark: int, expected: str | None
) -> None:
    view = replace(ALL_STORED, high_watermark=high_watermark).view()

    blocked = segment_blocked(view, view.local.rolled[0])

    assert (None if blocked is None else blocked.reason) == expected


def test_trim_when_there_is_no_lag_then_a_copy_of_a_later_clock_holds_nothing() -> None:
    stored = tuple(remote(s, s + 100, changed_ms=NOW_MS + 1000) for s in range(0, 1000, 100))
    assert _decided(Given(segments=stored)) == (900, "newest_rolled_segment")


@pytest.mark.parametrize(
    ("rolled_from", "local_start"),
    [
        pytest.param(100, 100, id="ends where the segment starts"),
        pytest.param(0, 100, id="ends at the local start, inside the segment"),
    ],
)
def test_trim_when_a_copy_is_of_earlier_offsets_then_its_lag_is_not_waited_for(
    rolled_from: int, local_start: int
) -> None:
    just_stored = remote(0, 100, changed_ms=NOW_MS)
    rolled = (local(rolled_from, 200), *(local(s, s + 100) for s in range(200, 1000, 100)))
    given = Given(
        rolled=rolled,
        segments=(just_stored, *OTHERS_STORED),
        local_start=local_start,
        trimmed=local_start,
        limits=PolicyLimits(local_trim_min_age_ms=0, local_trim_deletion_lag_ms=HOUR_MS),
    )
    assert _decided(given) == (900, "newest_rolled_segment")
