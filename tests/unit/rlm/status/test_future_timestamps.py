"""Scenario 101: records with future timestamps are reported, and not deleted early."""

from __future__ import annotations

from dataclasses import replace

from rlm.policy.retention import expiry_cut
from rlm.status.document import FutureTimestamps
from rlm.status.report import future_timestamps
from tests.unit.rlm.policy.views import HOUR_MS, NOW_MS, Given, local, policy, remote, stored_up_to

AHEAD = Given(
    segments=(remote(0, 100, age_ms=5 * HOUR_MS), remote(100, 200, age_ms=-2 * HOUR_MS)),
    rolled=(local(100, 200), local(200, 300, age_ms=-3 * HOUR_MS), local(300, 400)),
    policy=policy(retention_ms=HOUR_MS // 2),
)


def test_future_when_stored_and_local_segments_are_ahead_then_counted_once_each() -> None:
    assert future_timestamps(AHEAD.view()) == FutureTimestamps(
        segment_count=2, max_timestamp_ms=NOW_MS + 3 * HOUR_MS
    )


def test_future_when_ahead_by_less_than_brokers_allow_then_none() -> None:
    given = replace(AHEAD, rolled=(local(0, 100, age_ms=-HOUR_MS),), segments=())
    assert future_timestamps(given.view()) is None


def test_future_when_only_this_clock_is_behind_then_none() -> None:
    """A clock that was set back does not turn present timestamps into future ones."""
    assert future_timestamps(replace(AHEAD, broker_ms=NOW_MS + 5 * HOUR_MS).view()) is None


def test_future_when_all_is_past_then_none() -> None:
    assert future_timestamps(Given(segments=stored_up_to(300)).view()) is None


def test_expiry_when_a_segment_is_of_the_future_then_stops_before_it() -> None:
    """Kafka's rule: the first segment that is not too old ends the search."""
    cut = expiry_cut(AHEAD.view())
    assert cut is not None
    assert cut.offset == 100


def test_expiry_when_this_clock_jumped_ahead_then_nothing_expires_early() -> None:
    """This process's clock counts only up to ten minutes ahead of the brokers'."""
    given = replace(AHEAD, segments=(remote(0, 100),), broker_ms=NOW_MS - HOUR_MS)
    assert expiry_cut(given.view()) is None
