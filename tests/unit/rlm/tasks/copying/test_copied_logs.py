"""Copies of unusual logs: mixed segment sizes, formerly compacted, new partitions, an outage."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.invariants import leftovers, violations
from tests.fakes.replica import Replica, batch_header
from tests.fakes.world import KEEP_REMOTE, TIP, World
from tests.log_dir_builder import producer_snapshot
from tests.segment_builder import build_batch

KEEP_LOCAL = replace(KEEP_REMOTE, local_retention_ms=-1)
DAY_MS = 86_400_000


def test_copy_when_segment_sizes_change_then_all_are_stored_and_read() -> None:
    """Scenario 22: segment.bytes changes while the manager runs."""
    world = World()
    world.start()
    for count in (10, 3, 40, 1, 10):
        world.produce(count)
        world.roll()
        world.cycle()

    world.settle()

    assert world.stored() == [(0, 10), (10, 13), (13, 53), (53, 54), (54, 64)]
    assert world.leader().log_start_offset == 54
    assert violations(world) + leftovers(world) == []


def test_copy_when_the_log_was_compacted_once_then_its_gaps_are_accepted() -> None:
    """A formerly compacted topic lacks batches or all of a file, or has batches without records."""
    world = World(policy=None)
    world.segments(5)
    leader = world.leader()
    first, second, third, fourth = leader.files[:4]
    del first.batches[1]
    del second.batches[0]
    header = batch_header(third.batches[0])
    third.batches[0] = build_batch(
        [], base_offset=header.base_offset, last_offset=header.last_offset, leader_epoch=0
    )
    fourth.batches.clear()
    world.start()
    world.set_policy(KEEP_REMOTE)

    world.settle()

    assert world.stored() == [(0, 10), (10, 20), (20, 30), (30, 40), (40, 50)]
    assert leader.log_start_offset == 40
    assert world.state().gaps == ()
    assert violations(world) + leftovers(world) == []


def test_copy_when_partitions_are_added_then_tiered_without_a_restart() -> None:
    """Scenario 24."""
    world = World()
    world.segments(2)
    world.start()
    world.settle()
    added = replace(TIP, partition=1)
    world.tips = (*world.tips, added)
    for host in world.hosts.values():
        host.replicas[added] = Replica(producer_snapshot=producer_snapshot())
    world.elect(1, tip=added)
    world.segments(3, tip=added)

    world.settle()

    assert world.stored(tip=added) == [(0, 10), (10, 20), (20, 30)]
    assert violations(world) + leftovers(world) == []


def test_copy_when_the_process_was_away_for_a_day_then_the_lag_is_worked_off_in_order() -> None:
    """Scenario 99, D1: the broker kept everything, because nothing was trimmed."""
    world = World()
    world.segments(2)
    process = world.start()
    world.settle()
    process.effects.crashed = True
    for _ in range(12):
        world.segments(1)
        world.clock.advance(DAY_MS // 12)
    before = world.leader().log_start_offset
    world.start()

    world.settle()

    finished = [record.metadata for record in world.records()]
    in_order = sorted(finished, key=lambda each: each.event_timestamp_ms)
    assert before == 10
    assert len(world.stored()) == 14
    assert [m.offsets.start_offset for m in in_order] == list(range(0, 140, 10))
    assert violations(world) + leftovers(world) == []
