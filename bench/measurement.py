"""Represents a measured figure with its peer and goal, for the table and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A figure: `value` is the median of `runs`, all in `unit`.

    `peer` names what the figure is compared with; `goal` is empty if there is none.
    """

    metric: str
    value: float
    unit: str
    peer: str
    goal: str
    runs: tuple[float, ...]


def of_runs(
    metric: str, runs: Sequence[float], *, unit: str, peer: str = "", goal: str = ""
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
    """Print the figures with the range of their runs, within 80 characters."""
    table = Table()
    table.add_column("metric", no_wrap=True)
    for column in ("median", "runs"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit")
    table.add_column("goal")
    for each in measurements:
        spread = f"{_figure(min(each.runs))} – {_figure(max(each.runs))}"
        table.add_row(each.metric, _figure(each.value), spread, each.unit, each.goal)
    console.print(table)


def _figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def write_json(measurements: Iterable[Measurement], path: Path) -> None:
    """Write the figures as a JSON list."""
    path.write_text(json.dumps([asdict(each) for each in measurements], indent=2) + "\n")
