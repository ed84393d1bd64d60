"""Explores every interleaving of a scope's actors: all schedules, up to equal states.

A schedule is a list of actor numbers: who runs next, from point to point. Worlds cannot be copied,
so each branch is replayed from the start. A state that was seen before is not explored again, as
its future is known; acts that commute lead to one state. Schedules with few switches between actors
come first, so the first failure is close to the simplest one.

A step depends on the world, on the managers that its actor runs, and on where that actor is: equal
ones have equal outcomes, whatever the other actors have done. So a step that an equal one shows to
lead to a known state is not executed. What is executed must lead where an equal step led before.

The bound on states is a setting that fails the exploration: nothing is cut off silently. Memory:
digests and two edges for each actor, per state, and a schedule per branch that is left to be taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.simulation.exploration.stage import Stage, StageState, StateView
from tests.simulation.processes import UnexpectedError

Schedule = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSchedule:
    """A schedule after which something does not hold, and what each of its steps led to."""

    schedule: Schedule
    problem: str
    trail: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Exploration:
    """What was explored.

    `states` differ from each other, `endings` are those in which all actors have come to their
    ends. `replays` are executions from the start. `pruned` branches met a known state, of which
    `inferred` were not executed, as an equal step had shown it. `interleavings` are the schedules
    that these represent.
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
    """The scope is larger than the bound."""


class BrokenScopeError(Exception):
    """The scope's own preparation breaks an invariant: it shows nothing about schedules."""


class ReplayError(Exception):
    """A replay or an equal step led elsewhere before: something is not deterministic.

    Or an actor uses a manager that its scope does not name.
    """


@dataclass(order=True, slots=True)
class _Branch:
    """A schedule whose last step is new. Few switches first, then in the order of discovery."""

    switches: int
    number: int
    schedule: Schedule = field(compare=False)
    parent: StageState | None = field(compare=False)


class Explorer:
    """Explores one scope, whose stages `make_stage` builds, always the same."""

    def __init__(self, make_stage: Callable[[], Stage], *, max_states: int) -> None:
        self._make_stage = make_stage
        self._max_states = max_states
        self._found = Exploration()
        self._children: dict[StageState, list[StageState]] = {}
        self._outcomes: dict[tuple[int, StateView], StateView] = {}
        self._managers_of: Sequence[slice] = ()
        self._branches: list[_Branch] = []
        self._branches_count = 0

    def explore(self) -> Exploration:
        """Take every branch; ends early at the first schedule that breaks something.

        Raises TooManyStatesError if there are more states than the bound, and BrokenScopeError if
        something is broken before the first step.
        """
        self._push((), None)
        while self._branches and self._found.broken is None:
            self._take(heapq.heappop(self._branches))
        if self._found.broken is None:
            self._found.interleavings = self._count_paths()
        return self._found

    def _push(self, schedule: Schedule, parent: StageState | None) -> None:
        switches = sum(1 for _ in groupby(schedule))
        self._branches_count += 1
        heapq.heappush(self._branches, _Branch(switches, self._branches_count, schedule, parent))

    def _take(self, branch: _Branch) -> None:
        """Replay a branch, then go on until all ends or a known state is met."""
        if branch.parent is not None and self._is_inferred(branch.parent, branch.schedule[-1]):
            return
        self._found.replays += 1
        stage = self._make_stage()
        try:
            if branch.parent is None:
                self._begin(stage)
            else:
                for number in branch.schedule[:-1]:
                    stage.take(number)
                self._go_on(stage, branch.schedule, branch.parent)
        finally:
            stage.close()

    def _begin(self, stage: Stage) -> None:
        if problems := stage.broken():
            raise BrokenScopeError("; ".join(problems))
        self._managers_of = tuple(stage.managers_of)
        state = stage.state()
        self._add(state)
        if (following := self._following(stage, (), state)) is not None:
            self._go_on(stage, (following,), state)

    def _go_on(self, stage: Stage, schedule: Schedule, parent: StageState) -> None:
        """Take the last step of a schedule, and those that follow."""
        if stage.state() != parent:
            raise ReplayError(f"schedule {written(schedule[:-1])} led to another state than before")
        following: int | None = schedule[-1]
        while following is not None and self._step(stage, schedule):
            state = stage.state()
            self._note_outcome(parent, schedule, state)
            if self._is_known(state, parent):
                return
            following = self._following(stage, schedule, state)
            if following is None or self._is_inferred(state, following):
                return
            parent, schedule = state, (*schedule, following)

    def _is_inferred(self, parent: StageState, number: int) -> bool:
        """Whether an equal step shows that this one leads to a known state."""
        managers = self._managers_of[number]
        outcome = self._outcomes.get((number, parent.view(number, managers)))
        if outcome is None:
            return False
        state = parent.with_view(number, managers, outcome)
        if state not in self._children:
            return False
        self._found.inferred += 1
        return self._is_known(state, parent)

    def _note_outcome(self, parent: StageState, schedule: Schedule, state: StageState) -> None:
        number = schedule[-1]
        managers = self._managers_of[number]
        outcome = state.view(number, managers)
        known = self._outcomes.setdefault((number, parent.view(number, managers)), outcome)
        if known != outcome or parent.with_view(number, managers, outcome) != state:
            raise ReplayError(f"the last step of {written(schedule)} led elsewhere before")

    def _step(self, stage: Stage, schedule: Schedule) -> bool:
        """Take the last step of a schedule; whether all holds after it."""
        try:
            stage.take(schedule[-1])
            problems = stage.broken()
        except (Exception, UnexpectedError) as error:  # noqa: BLE001 - shown with its schedule
            problems = [repr(error)]
        return not self._is_broken(stage, schedule, problems)

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

    def _following(self, stage: Stage, done: Schedule, state: StageState) -> int | None:
        """Who continues; the others are branches. None at an end, which is checked."""
        self._found.depth = max(self._found.depth, len(done))
        ready = stage.ready()
        if not ready:
            self._found.endings += 1
            self._is_broken(stage, done, stage.unfinished())
            return None
        going_on = done[-1] if done and done[-1] in ready else ready[0]
        for other in ready:
            if other != going_on:
                self._push((*done, other), state)
        return going_on

    def _is_broken(self, stage: Stage, schedule: Schedule, problems: Sequence[str]) -> bool:
        if not problems:
            return False
        self._found.broken = BrokenSchedule(
            schedule=schedule, problem="; ".join(problems), trail=tuple(stage.trail)
        )
        return True

    def _count_paths(self) -> int:
        """How many schedules lead from the start to an end; the graph of states has no loops."""
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
    """Take the steps of a schedule; what each led to, and what is broken after it.

    Raises ValueError at a step of an actor that has come to its end, or that there is not.
    """
    for step, number in enumerate(schedule):
        if number not in stage.ready():
            raise ValueError(f"no such actor can go on (step={step} actor={number})")
        stage.take(number)
        yield stage.trail[-1], stage.broken()
    if not stage.ready():
        yield "all is healed, and new managers have come to rest", stage.unfinished()


def written(schedule: Schedule) -> str:
    """A schedule in short: "0x3,1" is actor 0 three times, then actor 1."""
    runs = [(number, len(list(run))) for number, run in groupby(schedule)]
    return ",".join(f"{number}x{count}" if count > 1 else str(number) for number, count in runs)


def parsed(text: str) -> Schedule:
    """The schedule that `written` wrote."""
    runs = [part.partition("x") for part in text.split(",") if part]
    return tuple(int(number) for number, _, count in runs for _ in range(int(count or 1)))
