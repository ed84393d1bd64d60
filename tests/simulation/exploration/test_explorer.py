"""The explorer takes every interleaving once, up to equal states, and cuts nothing off silently."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.fakes.effects import ProcessCrashError
from tests.fakes.world import KEEP_REMOTE
from tests.simulation.exploration.actors import END, Actor
from tests.simulation.exploration.explorer import (
    Explorer,
    ReplayError,
    TooManyStatesError,
    parsed,
    replay,
    written,
)
from tests.simulation.exploration.stage import Stage
from tests.simulation.processes import SimulatedProcess

Build = Callable[[Stage], None]


def _stage(build: Build) -> Stage:
    stage = Stage(policy=KEEP_REMOTE, process_type=SimulatedProcess, brokers=1)
    build(stage)
    return stage


def _explorer(build: Build, *, max_states: int = 100) -> Explorer:
    return Explorer(lambda: _stage(build), max_states=max_states)


def _commuting(stage: Stage) -> None:
    """Add two writers of different things, with two steps each."""
    world = stage.world
    stage.environment({"a": lambda: world.cut_off.add(1), "b": lambda: world.cut_off.add(2)})
    stage.environment({"c": lambda: world.clock.advance(1), "d": lambda: world.clock.advance(2)})


def _conflicting(stage: Stage) -> None:
    """Add two writers of records with the clock's time, so each order leaves another log."""
    world = stage.world
    stage.environment({"a": lambda: world.produce(1), "b": lambda: world.produce(1)})
    stage.environment({"c": lambda: world.clock.advance(1), "d": lambda: world.clock.advance(2)})


def _breaking(stage: Stage) -> None:
    """Add a violation that is visible only between c and d."""
    world = stage.world

    def violate() -> None:
        if world.clock.monotonic_ms() % 10 == 1:
            world.audit.violations.append("seen at the wrong moment")

    stage.environment({"a": violate})
    stage.environment({"c": lambda: world.clock.advance(1), "d": lambda: world.clock.advance(2)})


def test_exploration_when_acts_commute_then_equal_states_are_explored_once() -> None:
    """Scenario 103: 6 interleavings of 2 and 2 steps lead through a grid of 9 states."""
    found = _explorer(_commuting).explore()

    assert (found.interleavings, found.states, found.endings) == (6, 9, 1)
    assert (found.depth, found.pruned) == (4, 4)
    assert found.broken is None


def test_exploration_when_acts_conflict_then_every_order_has_a_state_of_its_own() -> None:
    """Scenario 103."""
    found = _explorer(_conflicting).explore()

    assert (found.interleavings, found.endings) == (6, 6)
    assert found.broken is None


def test_exploration_when_one_order_breaks_an_invariant_then_its_schedule_replays_it() -> None:
    """Scenario 103."""
    found = _explorer(_breaking).explore()

    assert found.broken is not None
    assert found.broken.schedule == (1, 0)
    assert found.broken.problem == "seen at the wrong moment"
    *_, (step, problems) = replay(_stage(_breaking), found.broken.schedule)
    assert (step, problems) == (found.broken.trail[-1], [found.broken.problem])


def test_exploration_when_it_exceeds_its_bound_then_fails() -> None:
    """Scenario 103: nothing is cut off silently."""
    with pytest.raises(TooManyStatesError):
        _explorer(_commuting, max_states=8).explore()


def test_exploration_when_a_replay_leads_elsewhere_then_fails() -> None:
    """Scenario 130: code that is not deterministic cannot be explored."""
    numbers = count(1)

    def build(stage: Stage) -> None:
        advance = stage.world.clock.advance
        stage.environment({"a": lambda: advance(next(numbers)), "b": lambda: advance(100)})
        stage.environment({"c": lambda: advance(1_000)})

    with pytest.raises(ReplayError):
        _explorer(build).explore()


def test_exploration_when_an_equal_step_was_executed_then_is_not_executed_again() -> None:
    """Scenario 103: one execution gives the same graph; conflicting steps are all executed."""

    def build(stage: Stage) -> None:
        stage.environment({"a": lambda: None, "b": lambda: None})
        stage.environment({"c": lambda: None, "d": lambda: None})

    silent, conflicting = _explorer(build).explore(), _explorer(_conflicting).explore()

    assert (silent.interleavings, silent.states, silent.endings) == (6, 9, 1)
    assert (silent.pruned, silent.inferred, silent.replays) == (4, 8, 1)
    assert conflicting.inferred == 0


def test_exploration_when_equal_steps_have_two_outcomes_then_fails() -> None:
    """Scenario 130: a step that depends on more than its scope names cannot be inferred."""

    def build(stage: Stage) -> None:
        seen: list[str] = []
        advance = stage.world.clock.advance
        stage.environment({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")})
        stage.environment({"c": lambda: advance(1 + len(seen))})

    with pytest.raises(ReplayError):
        _explorer(build).explore()


def test_replay_when_an_actor_has_ended_before_then_the_step_is_named() -> None:
    """Scenario 103: a schedule of managers without a guard may not fit managers that have it."""
    with pytest.raises(ValueError, match=r"step=1 actor=0"):
        list(replay(_stage(_breaking), (0, 0)))


def test_schedule_when_written_and_parsed_then_is_the_same() -> None:
    """Scenario 103."""
    schedule = (0, 0, 0, 1, 2, 2, 0)

    assert written(schedule) == "0x3,1,2x2,0"
    assert parsed(written(schedule)) == schedule


def test_actor_when_its_script_crashes_or_is_closed_then_has_ended() -> None:
    """Scenario 103."""

    def crash() -> None:
        raise ProcessCrashError

    crashing = Actor("crashing", crash)
    crashing.advance()
    done: list[str] = []

    def wait() -> None:
        waiting.pause("here")
        done.append("after")

    waiting = Actor("waiting", wait)
    waiting.advance()

    assert (crashing.point, waiting.point) == (END, "here")
    waiting.close()
    assert (waiting.point, done) == (END, [])


def test_actor_when_its_script_raises_then_who_advances_it_gets_the_error() -> None:
    """Scenario 103."""

    def fail() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        Actor("failing", fail).advance()
