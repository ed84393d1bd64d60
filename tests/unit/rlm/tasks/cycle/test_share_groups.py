"""A cycle trims no further than share groups have acknowledged (R8)."""

from __future__ import annotations

import logging

import pytest

from rlm.facts.share_group_start import HiddenShareGroupsError, ShareGroupStart
from rlm.tasks.cycle.share_group_watch import ShareGroupWatch
from rsm.segment.errors import RetriableError
from tests.fakes.clock import FakeClock
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.share_groups import MemoryShareGroups
from tests.fakes.world import TIP, World


def _reason(process: Process) -> str | None:
    blocked = process.reports[0].trim_blocked
    return None if blocked is None else blocked.reason


def test_trim_when_a_share_group_lags_then_waits_for_it() -> None:
    """R8: the trim continues once the group has read the records."""
    world = World()
    world.share_groups.started[TIP] = ShareGroupStart(group="sharers", offset=13)
    world.segments(4)
    process = world.start()
    world.settle()
    behind = (world.leader().log_start_offset, _reason(process))

    world.share_groups.started[TIP] = ShareGroupStart(group="sharers", offset=40)
    world.settle()

    assert behind == (10, "share_group")
    assert (world.leader().log_start_offset, _reason(process)) == (30, "newest_rolled_segment")
    assert violations(world) == []


def test_trim_when_share_groups_are_not_known_then_waits() -> None:
    """R8."""
    world = World()
    world.share_groups.problem = RetriableError("a coordinator is away")
    world.segments(3)
    process = world.start()
    world.settle()
    unknown = (world.leader().log_start_offset, _reason(process))

    world.share_groups.problem = None
    world.settle()

    assert unknown == (0, "share_groups_unknown")
    assert world.leader().log_start_offset == 20


def test_trim_when_share_groups_are_hidden_then_waits_for_the_right_and_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R8: a lasting state is one line in the log, whatever the number of cycles."""
    world = World()
    world.share_groups.problem = HiddenShareGroupsError("lacks Describe on the cluster")
    world.segments(3)
    process = world.start()
    with caplog.at_level(logging.INFO, "rlm.tasks.cycle.share_group_watch"):
        for _ in range(3):
            world.settle()
            world.clock.advance(60_000)
        hidden = (world.leader().log_start_offset, _reason(process))
        world.share_groups.problem = None
        world.settle()

    assert hidden == (0, "share_groups_hidden")
    assert world.share_groups.asked_count > 3
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert world.leader().log_start_offset == 20


def test_share_groups_when_nothing_is_to_be_trimmed_then_nobody_is_asked() -> None:
    world = World()
    world.produce()
    world.start()

    world.settle()

    assert world.share_groups.asked_count == 0


def test_share_groups_when_several_partitions_are_to_be_trimmed_then_asked_once_a_cycle() -> None:
    world = World(partitions=3)
    for tip in world.tips:
        world.segments(3, tip=tip)
    world.start()
    world.cycle()

    world.cycle()

    assert world.share_groups.asked_count == 1
    assert all(world.leader(tip).log_start_offset == 20 for tip in world.tips)


def test_watch_when_the_answer_is_some_seconds_old_then_asks_again() -> None:
    """The manager caches errors, too, so that it does not ask a hanging coordinator each time."""
    clock, groups = FakeClock(), MemoryShareGroups()
    groups.problem = RetriableError("a coordinator is away")
    watch = ShareGroupWatch(groups, clock)
    first = watch.start_of(TIP)
    groups.problem = None

    clock.advance(1_999)
    young = watch.start_of(TIP)
    clock.advance(1)
    old = watch.start_of(TIP)

    assert isinstance(first, RetriableError)
    assert young is first
    assert old is None
    assert groups.asked_count == 2
