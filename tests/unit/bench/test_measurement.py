from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from bench.measurement import Goal, GoalOutcome, at_least, at_most, of_runs, print_table

NAME = "supervisor's memory while copying"


@pytest.mark.parametrize(
    ("goal", "value", "outcome"),
    [
        (at_least(0.95), 0.95, GoalOutcome.MET),
        (at_least(0.95), 0.94, GoalOutcome.MISSED),
        (at_least(0.95, floor=0.85), 0.85, GoalOutcome.MISSED),
        (at_least(0.95, floor=0.85), 0.84, GoalOutcome.BELOW_FLOOR),
        (at_most(50), 50.0, GoalOutcome.MET),
        (at_most(50), 51.0, GoalOutcome.MISSED),
        (at_most(50, floor=60), 60.0, GoalOutcome.MISSED),
        (at_most(50, floor=60), 61.0, GoalOutcome.BELOW_FLOOR),
    ],
)
def test_goal_when_compared_with_a_figure_then_met_missed_or_below_the_floor(
    goal: Goal, value: float, outcome: GoalOutcome
) -> None:
    assert goal.outcome(value) is outcome


def test_goal_when_floor_is_harder_to_reach_then_refused() -> None:
    with pytest.raises(ValueError, match=r"floor 1\.1 is invalid: it is harder to reach than"):
        at_least(1, floor=1.1)


@pytest.mark.parametrize(
    ("goal", "text"),
    [(at_least(150_000), "≥ 150,000"), (at_least(1.0), "≥ 1"), (at_most(1.1), "≤ 1.1")],
)
def test_goal_when_shown_then_as_it_was_written(goal: Goal, text: str) -> None:
    assert str(goal) == text


def test_figure_when_made_of_runs_then_median_decides_about_the_goal() -> None:
    figure = of_runs("own ÷ theirs", [0.2, 0.9, 5.0], unit="ratio", goal=at_least(0.9))

    assert (figure.value, figure.outcome) == (0.9, GoalOutcome.MET)
    assert of_runs("speed", [1.0], unit="MB/s").outcome is None


def test_table_when_printed_then_fits_a_terminal_of_80_characters() -> None:
    output = StringIO()
    runs = [1.0, 0.75, 12_345.6]

    print_table(
        [
            of_runs(NAME, runs, unit="ratio", goal=at_least(0.9)),
            of_runs("missed", runs, unit="ratio", goal=at_least(2, floor=0.5)),
            of_runs("below", runs, unit="ratio", goal=at_most(0.5, floor=0.75)),
        ],
        Console(width=80, file=output),
    )

    texts = ("1.00", "0.75 – 12,346", "≥ 0.9", "met", "≥ 2", "missed", "(0.5)", "below")
    for shown in (NAME, *texts):
        assert shown in output.getvalue()
