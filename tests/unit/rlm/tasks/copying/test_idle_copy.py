"""R10, scenario 20: segments that are not rolled, because nobody writes, are stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.view import PolicyLimits
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import KEEP_REMOTE, TIP, World

MINUTE_MS = 60_000
SETTINGS = ProcessSettings(limits=PolicyLimits(local_trim_min_age_ms=0, idle_copy_ms=MINUTE_MS * 5))


def idle_world(*, brokers: int = 1) -> tuple[World, Process]:
    """Return a world with a stored segment, and five records after it, ten minutes old."""
    world = World(settings=SETTINGS, brokers=brokers)
    world.segments(1)
    world.produce(5)
    process = world.start()
    world.settle()
    assert world.stored() == [(0, 10)]
    world.clock.advance(10 * MINUTE_MS)
    return world, process


def test_idle_segment_when_older_than_allowed_then_stored_once() -> None:
    world, _ = idle_world()

    world.settle()
    world.settle()

    assert world.stored() == [(0, 10), (10, 15)]
    assert leftovers(world) == []
    assert world.audit.violations == []


def test_idle_segment_when_written_to_again_and_rolled_then_the_rest_follows() -> None:
    """R10: the pieces together are the file, no byte twice."""
    world, _ = idle_world()
    world.settle()
    world.produce(5)
    world.leader().roll()

    world.settle()

    assert world.stored() == [(0, 10), (10, 15), (15, 20)]
    sizes = [
        r.metadata.segment_size_bytes
        for r in world.records()
        if r.metadata.offsets.start_offset >= 10
    ]
    assert sum(sizes) == world.leader().files[1].size_bytes
    assert world.audit.violations == []


def test_idle_segment_when_a_transaction_is_open_in_it_then_stored_to_its_begin() -> None:
    """Scenario 2: what may still be aborted is not copied."""
    world, _ = idle_world()
    world.leader().open_transaction_offset = 12

    world.settle()
    # Batches are of five records: none lies wholly below the transaction.
    before = world.stored()
    world.leader().open_transaction_offset = None
    world.clock.advance(10 * MINUTE_MS)
    world.settle()

    assert (before, world.stored()) == ([(0, 10)], [(0, 10), (10, 15)])


def test_idle_segment_when_another_broker_leads_then_that_continues_from_what_is_stored() -> None:
    """Scenario 88: the next leader copies from the stored end on, with its own bounds."""
    world, _ = idle_world(brokers=2)
    world.settle()
    world.elect(2)
    world.start(2)
    world.produce(5)
    world.clock.advance(10 * MINUTE_MS)

    world.settle()

    assert world.stored() == [(0, 10), (10, 15), (15, 20)]
    assert world.audit.violations == []


def test_idle_segment_when_local_retention_is_over_then_it_stays_local() -> None:
    """R3: trims end at a segment's base, so nothing of it is trimmed before it is rolled."""
    world = World(policy=replace(KEEP_REMOTE, local_retention_ms=MINUTE_MS), settings=SETTINGS)
    world.segments(3)
    world.produce(5)
    world.start()
    world.settle()
    world.clock.advance(10 * MINUTE_MS)

    world.settle()

    assert world.stored()[-1] == (30, 35)
    assert world.leader(TIP).log_start_offset == 20


def test_idle_segment_when_the_log_begins_inside_a_batch_then_stored_from_that_batch_on() -> None:
    """Scenario 4: deleted records of the batch are stored with it, and cannot be read."""
    world, _ = idle_world()
    world.elect(1)
    world.produce(5)
    world.leader().move_start(17)
    world.clock.advance(10 * MINUTE_MS)

    world.settle()

    assert world.stored() == [(0, 10), (15, 20)]
    assert world.audit.violations == []


@pytest.mark.parametrize("rolled", [False, True])
def test_idle_segment_when_stored_and_too_old_then_expires(rolled: bool) -> None:
    """R10: the log starts after it, stored objects and local records are deleted."""
    policy = replace(KEEP_REMOTE, retention_ms=30 * MINUTE_MS)
    world = World(policy=policy, settings=SETTINGS)
    world.segments(1)
    world.produce(5)
    world.start()
    world.settle()
    world.clock.advance(10 * MINUTE_MS)
    world.settle()
    if rolled:
        world.leader().roll()
    world.clock.advance(30 * MINUTE_MS)

    world.settle()

    assert (world.state().log_start_offset, world.leader().log_start_offset) == (15, 15)
    assert (world.stored(), world.object_names()) == ([], [])
    assert world.audit.violations == []


@pytest.mark.parametrize("deleted_below", [14, 15, 17])
def test_idle_segment_when_records_are_deleted_at_the_broker_then_copying_continues(
    deleted_below: int,
) -> None:
    """R6: the earlier part of the file, which is no longer in the log, does not matter."""
    world, process = idle_world()
    world.settle()
    world.produce(5)
    world.leader().move_start(deleted_below)
    world.leader().roll()
    world.segments(3)

    world.settle()

    assert process.reports[0].lag_segments == 0
    assert world.stored()[-1] == (40, 50)
    assert world.leader().log_start_offset == 40
    assert violations(world) + leftovers(world) == []
