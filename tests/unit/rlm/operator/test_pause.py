"""The leader of a topic obeys its pauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.operator.pause import ALL_TASKS, Pausing
from rlmm.events.pause import PausableTask, paused_tasks
from tests.fakes.invariants import leftovers, violations
from tests.fakes.world import KEEP_REMOTE, World

COPY, TRIM, DELETE = PausableTask
EXPIRE = replace(KEEP_REMOTE, retention_ms=3_600_000)
HOURS_MS = 4 * 3_600_000


def pausing(world: World) -> Pausing:
    return Pausing(world.metadata, world.new_id)


def test_copies_when_paused_then_none_begins_until_resumed() -> None:
    world = World()
    world.segments(3)
    process = world.start()
    pausing(world).pause(KEEP_REMOTE, {COPY})
    world.settle()
    while_paused = (world.stored(), process.reports[0].copy_blocked)

    pausing(world).resume(KEEP_REMOTE, {COPY})
    world.settle()

    assert while_paused[0] == []
    assert while_paused[1] is not None
    assert while_paused[1].reason == "paused"
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert violations(world) + leftovers(world) == []


def test_copies_when_paused_meanwhile_then_the_one_under_way_is_the_last() -> None:
    world = World()
    world.segments(3)
    process = world.start()

    def pause() -> None:
        pausing(world).pause(KEEP_REMOTE, {COPY})

    process.effects.after("write .log", pause)

    world.settle()

    assert world.stored() == [(0, 10)]
    assert violations(world) + leftovers(world) == []


def test_trims_when_paused_then_local_data_stays_and_copies_continue() -> None:
    world = World()
    world.segments(3)
    process = world.start()
    pausing(world).pause(KEEP_REMOTE, {TRIM})

    world.settle()

    blocked = process.reports[0].trim_blocked
    assert world.leader().log_start_offset == 0
    assert len(world.stored()) == 3
    assert blocked is not None
    assert blocked.reason == "paused"


def test_deletions_when_paused_then_nothing_expires_and_the_reason_is_seen() -> None:
    world = World(policy=EXPIRE)
    world.segments(3)
    process = world.start()
    world.settle()
    pausing(world).pause(EXPIRE, {DELETE})
    world.clock.advance(HOURS_MS)
    world.settle()
    kept = (len(world.object_names()), world.state().log_start_offset)
    blocked = process.reports[0].expiry_blocked

    pausing(world).resume(EXPIRE, {DELETE})
    world.settle()

    assert kept == (6, 0)
    assert blocked is not None
    assert blocked.reason == "paused"
    assert world.object_names() == []
    assert violations(world) + leftovers(world) == []


def test_pause_when_the_leader_changes_then_holds_for_the_next_one() -> None:
    """R13: all processes agree, whichever leads."""
    world = World(brokers=2)
    world.segments(2)
    world.start(1)
    pausing(world).pause(KEEP_REMOTE, ALL_TASKS)
    world.elect(2)
    world.start(2)

    world.settle()

    assert world.stored() == []


@pytest.mark.parametrize("resumed", [{TRIM}, {TRIM, COPY, DELETE}])
def test_resume_when_in_part_then_the_rest_stays_paused(resumed: set[PausableTask]) -> None:
    world = World()
    pausing(world).pause(KEEP_REMOTE, {COPY, TRIM})

    left = pausing(world).resume(KEEP_REMOTE, resumed)

    assert left == {COPY, TRIM} - resumed
    assert paused_tasks(world.metadata, KEEP_REMOTE.topic_id) == left
