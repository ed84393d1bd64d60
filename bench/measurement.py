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
    """Represents the result of comparing a figure with its goal."""

    MET = "met"
    MISSED = "missed"
    BELOW_FLOOR = "below the floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Represents a limit that a figure should reach, and optionally the floor, an easier limit.

    If there is no floor, the outcome is never BELOW_FLOOR. Raises ValueError if the floor is harder
    to reach than the limit.
    """

    bound: Literal["at_least", "at_most"]
    limit: float
    floor: float | None = None

    def __post_init__(self) -> None:
        if self.floor is not None and not self._is_reached(self.limit, self.floor):
            raise ValueError(
                f"floor {self.floor} is invalid: it is harder to reach than the limit {self.limit}"
            )

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
    """Return a goal that a figure of at least `limit` meets."""
    return Goal(bound="at_least", limit=limit, floor=floor)


def at_most(limit: float, *, floor: float | None = None) -> Goal:
    """Return a goal that a figure of at most `limit` meets."""
    return Goal(bound="at_most", limit=limit, floor=floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Represents a figure: `value` is the median of `runs`, all in `unit`.

    `peer` names the figure that this one is compared with; it is empty if there is none.
    """

    metric: str
    value: float
    unit: str
    peer: str
    goal: Goal | None
    runs: tuple[float, ...]

    @property
    def outcome(self) -> GoalOutcome | None:
        """Return the result of comparing the figure with its goal; None if it has no goal."""
        return self.goal.outcome(self.value) if self.goal else None


def of_runs(
    metric: str, runs: Sequence[float], *, unit: str, peer: str = "", goal: Goal | None = None
) -> Measurement:
    """Return a figure: several runs, rounded to four decimals, and their median."""
    rounded = tuple(round(run, 4) for run in runs)
    return Measurement(
        metric=metric, value=median(rounded), unit=unit, peer=peer, goal=goal, runs=rounded
    )


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return each run of `ours` divided by the same run of `theirs`."""
    return [own / other for own, other in zip(ours, theirs, strict=True)]


def print_table(measurements: Iterable[Measurement], console: Console) -> None:
    """Print a table of the figures with their medians, ranges, units and goals."""
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
    """Return a figure with two decimals if its absolute value is below 10, else with none."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.0f}"


def range_text(runs: Sequence[float]) -> str:
    """Return the minimum and the maximum of several runs as text."""
    return f"{figure_text(min(runs))} – {figure_text(max(runs))}"


def limit_text(limit: float) -> str:
    """Return a limit with commas between thousands; a whole number has no decimals."""
    return f"{int(limit) if limit == int(limit) else limit:,}"
