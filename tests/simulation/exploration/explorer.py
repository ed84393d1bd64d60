"""Explores every interleaving of a scope's actors: all schedules, up to equal states.

A schedule is a list of actor numbers: who runs next, from point to point. Worlds cannot be copied,
so each branch is replayed from the start. A state that was seen before is not explored again, as
its future is known; acts that commute lead to one state. Schedules with few switches between actors
come first, so the first failure is close to the simplest one.

The bound on states is a setting that fails the exploration: nothing is cut off silently. Memory: a
digest and an edge for each actor, per state, and one schedule per branch that is left to be taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.simulation.exploration.stage import Stage
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
    ends. `replays` are executions from the start, of which `pruned` met a known state.
    `interleavings` are the schedules that these represent.
    """

    states: int = 0
    endings: int = 0
    replays: int = 0
    pruned: int = 0
    depth: int = 0
    interleavings: int = 0
    broken: BrokenSchedule | None = None


class TooManyStatesError(Exception):
    """The scope is larger than the bound."""


class BrokenScopeError(Exception):
    """The scope's own preparation breaks an invariant: it shows nothing about schedules."""


class ReplayError(Exception):
    """A replay did not lead to the state it led to before: something is not deterministic."""


@dataclass(order=True, slots=True)
class _Branch:
    """A schedule whose last step is new. Few switches first, then in the order of discovery."""

    switches: int
    number: int
    schedule: Schedule = field(compare=False)
    parent: bytes = field(compare=False)


class Explorer:
    """Explores one scope, whose stages `make_stage` builds, always the same."""

    def __init__(self, make_stage: Callable[[], Stage], *, max_states: int) -> None:
        self._make_stage = make_stage
        self._max_states = max_states
        self._found = Exploration()
        self._children: dict[bytes, list[bytes]] = {}
        self._branches: list[_Branch] = []
        self._branches_count = 0

    def explore(self) -> Exploration:
        """Take every branch; ends early at the first schedule that breaks something.

        Raises TooManyStatesError if there are more states than the bound, and BrokenScopeError if
        something is broken before the first step.
        """
        self._push((), b"")
        while self._branches and self._found.broken is None:
            self._take(heapq.heappop(self._branches))
        if self._found.broken is None:
            self._found.interleavings = self._count_paths()
        return self._found

    def _push(self, schedule: Schedule, parent: bytes) -> None:
        switches = sum(1 for _ in groupby(schedule))
        self._branches_count += 1
        heapq.heappush(self._branches, _Branch(switches, self._branches_count, schedule, parent))

    def _take(self, branch: _Branch) -> None:
        """Replay a branch, then go on until all ends or a known state is met."""
        self._found.replays += 1
        stage = self._make_stage()
        try:
            parent, done = branch.parent, branch.schedule
            if not done and (problems := stage.broken()):
                raise BrokenScopeError("; ".join(problems))
            for number in done[:-1]:
                stage.take(number)
            if done and stage.digest() != parent:
                raise ReplayError(f"schedule {written(done[:-1])} led to another state than before")
            if done and not self._step(stage, done):
                return
            state = stage.digest()
            while not self._is_known(state, parent):
                if (following := self._following(stage, done, state)) is None:
                    return
                parent, done = state, (*done, following)
                if not self._step(stage, done):
                    return
                state = stage.digest()
        finally:
            stage.close()

    def _step(self, stage: Stage, schedule: Schedule) -> bool:
        """Take the last step of a schedule; whether all holds after it."""
        try:
            stage.take(schedule[-1])
            problems = stage.broken()
        except (Exception, UnexpectedError) as error:  # noqa: BLE001 - shown with its schedule
            problems = [repr(error)]
        return not self._is_broken(stage, schedule, problems)

    def _is_known(self, state: bytes, parent: bytes) -> bool:
        if parent:
            self._children[parent].append(state)
        if state in self._children:
            self._found.pruned += 1
            return True
        self._children[state] = []
        self._found.states += 1
        if self._found.states > self._max_states:
            raise TooManyStatesError(f"more than {self._max_states} states")
        return False

    def _following(self, stage: Stage, done: Schedule, state: bytes) -> int | None:
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
        counts: dict[bytes, int] = {}
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
