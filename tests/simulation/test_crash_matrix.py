"""A restart finishes the work of a process that died before or after any of its effects.

Runs the whole life of a partition, once for each such effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rlm.policy.view import PolicyLimits
from rsm.segment.errors import RetriableError
from tests.fakes.effects import Moment
from tests.fakes.invariants import leftovers, violations
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process, ProcessSettings
from tests.fakes.world import KEEP_REMOTE, World

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
TEN_MINUTES = replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS)
HOUR_OF_GRACE = ProcessSettings(
    limits=PolicyLimits(local_trim_min_age_ms=0, orphan_grace_ms=HOUR_MS)
)
HEARTBEAT = "publish ProcessRegistered"

Story = Callable[[World], None]


class RefusedProcess(Process):
    """A process whose store refuses to delete `.log` objects."""

    def make_metadata(self, external: FakeSystems) -> FreshMetadata:
        self.effects.fail("delete .log", RetriableError("store refuses"), times=100)
        return super().make_metadata(external)


class FailingWritesProcess(Process):
    """A process whose store refuses its first `.meta` object."""

    def make_metadata(self, external: FakeSystems) -> FreshMetadata:
        self.effects.fail("write .meta", RetriableError("store refuses"))
        return super().make_metadata(external)


def copy_trim_expire(world: World) -> None:
    """Copy two segments and trim the first; then copy one more, and expire the first two."""
    world.segments(2)
    run(world, cycles=2)
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    run(world, cycles=4)


def expire_and_forget(world: World) -> None:
    """Copy a segment, expire it, and after the grace remove its records, too."""
    world.segments(1)
    world.produce(5)
    run(world, cycles=2)
    world.clock.advance(20 * MINUTE_MS)
    run(world, cycles=4)
    world.clock.advance(3 * HOUR_MS)
    run(world, cycles=4)


def copy_one(world: World) -> None:
    """Copy one segment."""
    world.segments(1)
    run(world, cycles=3)


def run(world: World, *, cycles: int) -> None:
    """Run cycles, restart a process that died, and check all invariants after each cycle."""
    for _ in range(cycles):
        if not world.running(1):
            world.start()
        world.cycle()
        assert violations(world) == []


def play(
    story: Story, process_type: type[Process] = Process, crash_at: Moment | None = None
) -> World:
    world = World(policy=TEN_MINUTES, settings=HOUR_OF_GRACE, process_type=process_type)
    effects = world.start().effects
    if crash_at is not None:
        effects.at(crash_at, effects.crash)
    story(world)
    if not world.running(1):
        world.start()
    world.settle()
    return world


def outcome(world: World) -> object:
    """Return the end state of a partition, independent of how it was reached."""
    return (
        world.stored(),
        world.state().log_start_offset,
        world.leader().log_start_offset,
        {dead_letter.metadata.offsets for dead_letter in world.dead_letters.published},
    )


@pytest.mark.parametrize(
    ("story", "process_type"),
    [
        (copy_trim_expire, Process),
        (expire_and_forget, Process),
        (copy_one, FailingWritesProcess),
        (expire_and_forget, RefusedProcess),
    ],
)
def test_simulation_when_the_process_dies_at_any_effect_then_a_restart_finishes_it(
    story: Story, process_type: type[Process]
) -> None:
    """Scenarios 10, 13, 14, 73; R2, R7, R11: no gap, no orphan, nothing dangling."""
    undisturbed = play(story, process_type)
    names = undisturbed.processes[0].effects.performed

    for number, name in enumerate(names):
        for after in (False, True):
            if name == HEARTBEAT:
                continue
            where = f"{'after' if after else 'before'} effect {number}, {name}"
            world = play(story, process_type, Moment(number=number, after=after))
            assert len(world.processes) == 2, where
            assert (outcome(world), violations(world), leftovers(world)) == (
                outcome(undisturbed),
                [],
                [],
            ), where


def test_simulation_when_every_run_dies_soon_then_it_still_comes_to_its_end() -> None:
    """Scenario 10: each run ends after five effects, and the work is still completed."""
    undisturbed = play(copy_trim_expire)
    world = World(policy=TEN_MINUTES, settings=HOUR_OF_GRACE)
    world.segments(2)
    for cycle in range(28):
        if cycle == 15:
            world.clock.advance(20 * MINUTE_MS)
            world.segments(1)
        if not world.running(1):
            effects = world.start().effects
            effects.at(Moment(number=7, after=False), effects.crash)
        world.cycle()
        assert violations(world) == []
    world.restart()

    world.settle()

    assert outcome(world) == outcome(undisturbed)
    assert leftovers(world) == []
