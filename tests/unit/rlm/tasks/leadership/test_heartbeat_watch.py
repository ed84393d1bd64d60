from __future__ import annotations

from rlm.tasks.leadership.heartbeat import HeartbeatWatch
from tests.fakes.clock import FakeClock

INTERVAL_MS = 5_000


def test_watch_when_three_heartbeats_are_missed_then_the_cluster_cannot_be_reached() -> None:
    """Scenario 119: from the same millisecond on, other processes count this one as gone."""
    clock = FakeClock()
    watch = HeartbeatWatch(clock, INTERVAL_MS)
    watch.begin()
    watch.record_heartbeat()

    clock.advance(3 * INTERVAL_MS - 1)
    in_time = watch.problem(is_metadata_ready=True)
    clock.advance(1)

    assert in_time is None
    assert watch.problem(is_metadata_ready=True) == (
        "the cluster cannot be reached: no heartbeat has come back through the metadata topic "
        "for 15 s"
    )


def test_watch_when_the_first_heartbeat_never_comes_back_then_counts_from_its_beginning() -> None:
    clock = FakeClock()
    watch = HeartbeatWatch(clock, INTERVAL_MS)
    clock.advance(60_000)
    before = watch.problem(is_metadata_ready=True)
    watch.begin()
    clock.advance(2 * INTERVAL_MS)
    watch.begin()  # the next attempt changes nothing

    clock.advance(INTERVAL_MS + 1)

    assert before is None
    assert watch.problem(is_metadata_ready=True) is not None


def test_watch_when_a_heartbeat_comes_back_then_is_well_again() -> None:
    clock = FakeClock()
    watch = HeartbeatWatch(clock, INTERVAL_MS)
    watch.begin()
    clock.advance(10 * INTERVAL_MS)

    watch.record_heartbeat()

    assert watch.problem(is_metadata_ready=True) is None


def test_watch_when_the_metadata_cannot_be_used_here_then_nothing_is_said_of_the_cluster() -> None:
    """For example, this host's disk is full."""
    clock = FakeClock()
    watch = HeartbeatWatch(clock, INTERVAL_MS)
    watch.begin()
    clock.advance(20_000)

    assert watch.problem(is_metadata_ready=False) == (
        "no heartbeat has come back through the metadata topic for 20 s"
    )
