"""Two managers that both believe they lead: the first one never does harm.

The second one starts before or after each effect of the first, takes over, and acts at once.
Fencing, expected states and the order of effects must hold whatever the first does next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fakes.effects import Moment
from tests.fakes.invariants import leftovers, violations
from tests.fakes.world import KEEP_REMOTE, World

MINUTE_MS = 60_000
TEN_MINUTES = replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS)
HEARTBEAT = "publish ProcessRegistered"

TakeOver = Callable[[World], None]


def beside(world: World) -> None:
    """Start a second manager next to the same broker, in the same epoch."""
    world.start(1).step()


def elected(world: World) -> None:
    """Start another broker's manager, after an election that the first broker knows of."""
    world.elect(2)
    world.start(2).step()


def elected_unheard(world: World) -> None:
    """Start another broker's manager, while the first broker still believes that it leads."""
    world.cut_off.add(1)
    world.elect(2)
    world.start(2).step()


def life(world: World) -> None:
    """Copy, trim, expire and delete; check the invariants after each cycle."""
    world.segments(2)
    cycles(world, 2)
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    cycles(world, 4)


def cycles(world: World, count: int) -> None:
    for _ in range(count):
        world.cycle()
        assert violations(world) == []


def end(world: World) -> None:
    """Let all processes read all records and copies' deadlines pass, until nothing changes."""
    world.cut_off.clear()
    world.commit()
    world.clock.advance(world.settings.attempt_timeout_ms)
    world.settle(quiet_cycles=2)


def moments() -> list[Moment]:
    world = World(policy=TEN_MINUTES)
    process = world.start()
    life(world)
    names = process.effects.performed
    return [
        Moment(number=number, after=after)
        for number, name in enumerate(names)
        for after in (False, True)
        if name != HEARTBEAT
    ]


def play(moment: Moment, take_over: TakeOver) -> World:
    world = World(brokers=2, policy=TEN_MINUTES)
    world.start().effects.at(moment, lambda: take_over(world))
    life(world)
    end(world)
    return world


@pytest.mark.parametrize("take_over", [beside, elected, elected_unheard])
def test_first_manager_when_another_takes_over_at_any_effect_then_is_harmless(
    take_over: TakeOver,
) -> None:
    """Scenarios 5, 6, 72, 100, 108; R1, R7, R21."""
    for moment in moments():
        world = play(moment, take_over)

        assert (violations(world), leftovers(world)) == ([], []), moment
        assert world.state().log_start_offset == 30, moment
