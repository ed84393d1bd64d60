"""Represents a measured figure with its peer and goal, and prints figures as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Literal

from rich.console import Console
from rich.table import Table


class GoalOutcome(StrEnum):
    """The result of comparing a figure with its goal."""

    MET = "met"
    MISSED = "missed"
    BELOW_FLOOR = "below the floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A limit that a figure should reach, and an easier one, the floor, for figures that miss it.

    Without a floor, a figure has met its goal or missed it.
    """

    bound: Literal["at_least", "at_most"]
    limit: float
    floor: float | None = None

    def __post_init__(self) -> None:
        if self.floor is not None and not self._is_reached(self.limit, self.floor):
            raise ValueError(f"the floor {self.floor} is harder to reach than {self.limit}")

    def outcome(self, value: float) -> GoalOutcome:
        """Compare a figure with the goal."""
        if self._is_reached(value, self.limit):
            return GoalOutcome.MET
        if self.floor is None or self._is_reached(value, self.floor):
            return GoalOutcome.MISSED
        return GoalOutcome.BELOW_FLOOR

    def _is_reached(self, value: float, limit: float) -> bool:
        return value >= limit if self.bound == "at_least" else value <= limit

    def __str__(self) -> str:
        return f"{'≥' if self.bound == 'at_least' else '≤'} {limit_text(self.limit)}"


def at_least(limit: float, *, floor: float | None = None) -> Goal:
    """Return the goal of a figure that should be high."""
    return Goal(bound="at_least", limit=limit, floor=floor)


def at_most(limit: float, *, floor: float | None = None) -> Goal:
    """Return the goal of a figure that should be low."""
    return Goal(bound="at_most", limit=limit, floor=floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A figure: `value` is the median of `runs`, all in `unit`.

    `peer` describes what the figure is compared with; it is empty without a peer.
    """

    metric: str
    value: float
    unit: str
    peer: str
    goal: Goal | None
    runs: tuple[float, ...]

    @property
    def outcome(self) -> GoalOutcome | None:
        """The result of comparing the figure with its goal, or None without a goal."""
        return self.goal.outcome(self.value) if self.goal else None


def of_runs(
    metric: str, runs: Sequence[float], *, unit: str, peer: str = "", goal: Goal | None = None
) -> Measurement:
    """Return the median of several runs as a figure."""
    rounded = tuple(round(run, 4) for run in runs)
    return Measurement(
        metric=metric, value=median(rounded), unit=unit, peer=peer, goal=goal, runs=rounded
    )


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the ratios of alternating runs, run by run."""
    return [own / other for own, other in zip(ours, theirs, strict=True)]


def print_table(measurements: Iterable[Measurement], console: Console) -> None:
    """Print a table of the figures with the range of their runs and their goal."""
    table = Table()
    table.add_column("metric", no_wrap=True)
    for column in ("median", "runs"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit")
    table.add_column("goal")
    for each in measurements:
        row = (each.metric, figure_text(each.value), range_text(each.runs), each.unit)
        table.add_row(*row, _goal_text(each))
    console.print(table)


def _goal_text(measurement: Measurement) -> str:
    goal, outcome = measurement.goal, measurement.outcome
    if goal is None or outcome is None:
        return ""
    if outcome is GoalOutcome.MET or goal.floor is None:
        return f"{goal} {outcome}"
    return f"{goal} {outcome} ({limit_text(goal.floor)})"


def figure_text(value: float) -> str:
    """Return a figure with two decimals if its amount is below 10, else without decimals."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.0f}"


def range_text(runs: Sequence[float]) -> str:
    """Return the minimum and the maximum of several runs."""
    return f"{figure_text(min(runs))} – {figure_text(max(runs))}"


def limit_text(limit: float) -> str:
    """Return a limit with commas between thousands; a whole number has no decimals."""
    return f"{int(limit) if limit == int(limit) else limit:,}"
