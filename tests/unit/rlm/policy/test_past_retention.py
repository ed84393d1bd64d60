"""When all rolled segments are past the retention, and the active one may be, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.retention import may_be_past_retention
from rlmm.events.policy import PolicyState
from tests.unit.rlm.policy.views import HOUR_MS, NOW_MS, THEM, Given, local, policy

RETENTION = policy(retention_ms=HOUR_MS - 1)
PAST = Given(policy=RETENTION)
"""Ten rolled segments, an hour old; the log ends at 1050."""


def test_past_retention_when_every_rolled_segment_is_then_may_be() -> None:
    assert may_be_past_retention(PAST.view())


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(replace(PAST, policy=policy(retention_ms=HOUR_MS)), id="exactly as old"),
        pytest.param(replace(PAST, policy=policy(retention_ms=-1)), id="unlimited"),
        pytest.param(
            replace(PAST, rolled=(*PAST.rolled[:-1], local(900, 1000, age_ms=0))), id="last younger"
        ),
        pytest.param(
            replace(PAST, rolled=(local(0, 100, age_ms=0), *PAST.rolled[1:])), id="first younger"
        ),
        pytest.param(replace(PAST, log_start=None), id="tiering has not begun"),
        pytest.param(replace(PAST, owner=THEM), id="not the owner"),
        pytest.param(
            replace(PAST, policy=replace(RETENTION, state=PolicyState.DISABLING)), id="not active"
        ),
        pytest.param(replace(PAST, log_start=1050), id="nothing is left above the log start"),
        pytest.param(replace(PAST, local_start=1050), id="nothing is left above the local start"),
        pytest.param(replace(PAST, broker_ms=NOW_MS - 2 * HOUR_MS), id="by the brokers' clock"),
    ],
)
def test_past_retention_when_anything_speaks_against_it_then_not(given: Given) -> None:
    assert not may_be_past_retention(given.view())


def test_past_retention_when_nothing_is_being_written_then_not() -> None:
    view = PAST.view()
    assert not may_be_past_retention(replace(view, local=replace(view.local, active_size_bytes=0)))


@pytest.mark.parametrize("changes", [{"log_start": 1049}, {"local_start": 1049, "trimmed": 1049}])
def test_past_retention_when_one_record_is_left_then_may_be(changes: dict[str, int]) -> None:
    assert may_be_past_retention(replace(PAST, **changes).view())  # type: ignore[arg-type]  # fields of Given


def test_past_retention_when_retention_is_zero_then_may_be() -> None:
    assert may_be_past_retention(replace(PAST, policy=policy(retention_ms=0)).view())


def test_past_retention_when_all_rolled_is_below_the_log_start_then_may_be() -> None:
    assert may_be_past_retention(replace(PAST, log_start=1000, local_start=1000).view())
