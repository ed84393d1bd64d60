"""Partitions without new writes: local copies are trimmed, and the last records expire."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.view import PolicyLimits
from rsm.segment.errors import RetriableError
from tests.fakes.invariants import leftovers
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import KEEP_REMOTE, TIP, World

MINUTE_MS = 60_000
TEN_MINUTES = replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS)


def idle_world(*, in_active: int = 5) -> tuple[World, Process]:
    """Return a world with a stored segment and some records in the active one, none expired."""
    world = World(policy=TEN_MINUTES)
    world.segments(1)
    world.produce(in_active)
    process = world.start()
    world.settle()
    return world, process


def test_active_segment_when_all_its_records_are_too_old_then_expires_to_the_end() -> None:
    """R10: a log-start event to the end, then DeleteRecords; the segment is not stored."""
    world, _ = idle_world()
    world.clock.advance(20 * MINUTE_MS)

    world.settle()

    assert world.state().log_start_offset == 15
    assert world.leader().log_start_offset == 15
    assert (world.stored(), world.object_names(), leftovers(world)) == ([], [], [])
    assert world.audit.violations == []


def test_active_segment_when_one_record_is_young_then_stays() -> None:
    """R10, scenario 67."""
    world, _ = idle_world()
    world.clock.advance(20 * MINUTE_MS)
    world.produce(5)

    world.settle()

    assert world.state().log_start_offset == 10
    assert world.leader().end_offset == 20


def test_active_segment_when_its_records_are_open_to_a_transaction_then_stay() -> None:
    """R10: nothing above the last stable offset expires."""
    world, _ = idle_world()
    world.leader().open_transaction_offset = 12
    world.clock.advance(20 * MINUTE_MS)

    world.settle()

    assert world.state().log_start_offset == 12


@pytest.mark.parametrize("failures", [1, 3])
def test_active_segment_when_the_broker_does_not_say_then_later(failures: int) -> None:
    """R10: the manager asks the broker again later, and does not guess."""
    world, process = idle_world()
    process.effects.fail("first_offsets_since", RetriableError("broker away"), times=failures)
    world.clock.advance(20 * MINUTE_MS)
    world.cycle()
    world.cycle()
    before = world.state().log_start_offset

    for _ in range(10 * failures + 10):
        world.cycle()

    assert (before, world.state().log_start_offset) == (10, 15)


def test_local_copy_when_the_topic_is_idle_then_trimmed_by_the_timer_all_the_same() -> None:
    """Scenario 114: no new record is needed for local retention to act."""
    world = World(policy=replace(KEEP_REMOTE, local_retention_ms=10 * MINUTE_MS))
    world.segments(3)
    world.start()
    world.settle()
    while_young = world.leader(TIP).log_start_offset
    world.clock.advance(20 * MINUTE_MS)

    world.settle()

    assert (while_young, world.leader(TIP).log_start_offset) == (0, 20)
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]


def test_idle_partition_when_all_of_it_is_too_old_then_expires_share_by_share() -> None:
    """An operator can notice a wrong retention before all records are gone, idle or not."""
    settings = ProcessSettings(limits=PolicyLimits(local_trim_min_age_ms=0, expiry_max_percent=10))
    world = World(policy=TEN_MINUTES, settings=settings)
    world.segments(20)
    world.produce(5)
    world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    starts = [0]
    while starts[-1] < 205:
        world.cycle()
        starts.append(world.state().log_start_offset or 0)

    assert sorted(set(starts)) == [0, *range(20, 210, 10), 205]
