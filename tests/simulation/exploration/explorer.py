"""Explores every interleaving of a scope's actors: all schedules, up to equal states.

A schedule is a list of actor numbers: who runs next, from point to point. Worlds cannot be copied,
so each branch is replayed from the start. A state that was seen before is not explored again,
because its future is known; acts that commute lead to one state. Schedules with few switches
between actors come first, so the first failure is close to the simplest one.

A step depends on the world, on the managers that its actor runs, and on the point of that actor.
Equal steps have equal outcomes, whatever the other actors have done. So a step that equals an
executed one is inferred: it is not executed, and its state follows from the known outcome. Its
invariants hold, because they depend on the world and its past alone, and were checked after the
executed step. The same is true of an ending, because new managers have no memory. A replay must
reach the state that was inferred or seen before.

An exploration that exceeds the bound on states fails: nothing is cut off silently. Memory: for each
state, digests and two edges per actor; for each branch not yet taken, a schedule.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby

from tests.simulation.exploration.stage import Stage, StageState, StateView
from tests.simulation.processes import UnexpectedError

Schedule = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSchedule:
    """A schedule that breaks an invariant, and the result of each of its steps."""

    schedule: Schedule
    problem: str
    trail: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Exploration:
    """What was explored. `states` counts distinct states, `endings` those without a running actor.

    `replays` are executions from the start. `pruned` branches met a known state. `inferred` steps
    were not executed, because an equal step had shown their result. `interleavings` is the number
    of schedules that the explored steps represent.
    """

    states: int = 0
    endings: int = 0
    replays: int = 0
    pruned: int = 0
    inferred: int = 0
    depth: int = 0
    interleavings: int = 0
    broken: BrokenSchedule | None = None


class TooManyStatesError(Exception):
    """The scope has more states than the bound allows."""


class BrokenScopeError(Exception):
    """The scope's own preparation breaks an invariant, so it shows nothing about schedules."""


class ReplayError(Exception):
    """A replay led to another state than before: something is not deterministic.

    Or an actor uses a manager that its scope does not name.
    """


@dataclass(order=True, slots=True)
class _Branch:
    """A schedule whose last step is new. Few switches first, then in the order of discovery."""

    switches: int
    number: int
    schedule: Schedule = field(compare=False)
    parent: StageState = field(compare=False)


class _Execution:
    """One execution of a scope, which begins when a step must be executed, and then catches up."""

    def __init__(self, make_stage: Callable[[], Stage]) -> None:
        self._make_stage = make_stage
        self._stage: Stage | None = None
        self._taken: Schedule = ()

    def begin(self) -> Stage:
        """Return the stage; it is built at the first call."""
        if self._stage is None:
            self._stage = self._make_stage()
        return self._stage

    def after(self, schedule: Schedule, state: StageState) -> Stage:
        """Take the rest of a schedule that begins with the steps taken so far; return the stage.

        Raises ReplayError if a replay leads to another state.
        """
        is_replayed = self._stage is None or schedule != self._taken
        stage = self.begin()
        for number in schedule[len(self._taken) :]:
            stage.take(number)
        self._taken = schedule
        if is_replayed and stage.state() != state:
            raise ReplayError(f"schedule {written(schedule)} led to another state than before")
        return stage

    def take(self, number: int) -> None:
        """Take one more step."""
        self._taken = (*self._taken, number)
        self.begin().take(number)

    def close(self) -> None:
        if self._stage is not None:
            self._stage.close()


class Explorer:
    """Explores one scope; `make_stage` always builds the same stage."""

    def __init__(self, make_stage: Callable[[], Stage], *, max_states: int) -> None:
        self._make_stage = make_stage
        self._max_states = max_states
        self._found = Exploration()
        self._children: dict[StageState, list[StageState]] = {}
        self._outcomes: dict[tuple[int, StateView], StateView] = {}
        self._finished_worlds: set[tuple[bytes, bytes, tuple[int, ...]]] = set()
        self._managers_of: Sequence[slice] = ()
        self._branches: list[_Branch] = []
        self._branches_count = 0

    def explore(self) -> Exploration:
        """Take every branch; end early at the first schedule that breaks something.

        Raises TooManyStatesError if there are more states than the bound allows, and
        BrokenScopeError if something is broken before the first step.
        """
        with closing(_Execution(self._new_stage)) as execution:
            self._begin(execution)
        while self._branches and self._found.broken is None:
            branch = heapq.heappop(self._branches)
            with closing(_Execution(self._new_stage)) as execution:
                self._go_on(execution, branch.schedule, branch.parent)
        if self._found.broken is None:
            self._found.interleavings = self._count_paths()
        return self._found

    def _new_stage(self) -> Stage:
        self._found.replays += 1
        return self._make_stage()

    def _push(self, schedule: Schedule, parent: StageState) -> None:
        switches = sum(1 for _ in groupby(schedule))
        self._branches_count += 1
        heapq.heappush(self._branches, _Branch(switches, self._branches_count, schedule, parent))

    def _begin(self, execution: _Execution) -> None:
        stage = execution.begin()
        if problems := stage.broken():
            raise BrokenScopeError("; ".join(problems))
        self._managers_of = tuple(stage.managers_of)
        state = stage.state()
        self._add(state)
        if (following := self._following(execution, (), state)) is not None:
            self._go_on(execution, (following,), state)

    def _go_on(self, execution: _Execution, schedule: Schedule, parent: StageState) -> None:
        """Take the last step of a schedule, and those that follow until a known state or an end."""
        following: int | None = schedule[-1]
        while following is not None:
            state = self._inferred(parent, following)
            if state is None:
                state = self._executed(execution, schedule, parent)
            if state is None or self._is_known(state, parent):
                return
            following = self._following(execution, schedule, state)
            if following is not None:
                parent, schedule = state, (*schedule, following)

    def _inferred(self, parent: StageState, number: int) -> StageState | None:
        """Return where a step leads, if an equal step was executed."""
        managers = self._managers_of[number]
        outcome = self._outcomes.get((number, parent.view(number, managers)))
        if outcome is None:
            return None
        self._found.inferred += 1
        return parent.with_view(number, managers, outcome)

    def _executed(
        self, execution: _Execution, schedule: Schedule, parent: StageState
    ) -> StageState | None:
        """Execute a schedule's last step; return its state, or None if an invariant is broken."""
        *_, number = schedule
        stage = execution.after(schedule[:-1], parent)
        try:
            execution.take(number)
            problems = stage.broken()
        except (Exception, UnexpectedError) as error:  # noqa: BLE001 - shown with its schedule
            problems = [repr(error)]
        if self._is_broken(stage, schedule, problems):
            return None
        state, managers = stage.state(), self._managers_of[number]
        outcome = state.view(number, managers)
        self._outcomes[number, parent.view(number, managers)] = outcome
        if parent.with_view(number, managers, outcome) != state:
            raise ReplayError(
                f"the last step of {written(schedule)} changed more than its scope says"
            )
        return state

    def _is_known(self, state: StageState, parent: StageState) -> bool:
        self._children[parent].append(state)
        if state in self._children:
            self._found.pruned += 1
            return True
        self._add(state)
        return False

    def _add(self, state: StageState) -> None:
        self._children[state] = []
        self._found.states += 1
        if self._found.states > self._max_states:
            raise TooManyStatesError(f"more than {self._max_states} states")

    def _following(self, execution: _Execution, done: Schedule, state: StageState) -> int | None:
        """Return the actor that continues, and push the others; check an end and return None."""
        self._found.depth = max(self._found.depth, len(done))
        ready = state.ready()
        if not ready:
            self._found.endings += 1
            self._finish(execution, done, state)
            return None
        going_on = done[-1] if done and done[-1] in ready else ready[0]
        for other in ready:
            if other != going_on:
                self._push((*done, other), state)
        return going_on

    def _finish(self, execution: _Execution, done: Schedule, state: StageState) -> None:
        """Check that nothing is left undone, once for each world that new managers find."""
        world = (state.shared, state.topic, state.read_offsets)
        if world not in self._finished_worlds:
            self._finished_worlds.add(world)
            stage = execution.after(done, state)
            self._is_broken(stage, done, stage.unfinished())

    def _is_broken(self, stage: Stage, schedule: Schedule, problems: Sequence[str]) -> bool:
        if not problems:
            return False
        self._found.broken = BrokenSchedule(
            schedule=schedule, problem="; ".join(problems), trail=tuple(stage.trail)
        )
        return True

    def _count_paths(self) -> int:
        """Return the number of schedules from the start to an end; the graph has no loops."""
        counts: dict[StageState, int] = {}
        root = next(iter(self._children))
        waiting = [root]
        while waiting:
            state = waiting[-1]
            missing = [child for child in self._children[state] if child not in counts]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            children = self._children[state]
            counts[state] = sum(counts[child] for child in children) if children else 1
        return counts[root]


def replay(stage: Stage, schedule: Schedule) -> Iterator[tuple[str, Sequence[str]]]:
    """Take the steps of a schedule; return the result of each, and what is broken at the end.

    Raises ValueError at a step of an actor that has ended, or that does not exist.
    """
    for step, number in enumerate(schedule):
        if number not in stage.ready():
            raise ValueError(f"no such actor can continue (step={step} actor={number})")
        stage.take(number)
        yield stage.trail[-1], stage.broken()
    if not stage.ready():
        yield "all is healed, and new managers have come to rest", stage.unfinished()


def written(schedule: Schedule) -> str:
    """Return a schedule in short form: "0x3,1" is actor 0 three times, then actor 1."""
    runs = [(number, len(list(run))) for number, run in groupby(schedule)]
    return ",".join(f"{number}x{count}" if count > 1 else str(number) for number, count in runs)


def parsed(text: str) -> Schedule:
    """Parse the result of `written`."""
    runs = [part.partition("x") for part in text.split(",") if part]
    return tuple(int(number) for number, _, count in runs for _ in range(int(count or 1)))
