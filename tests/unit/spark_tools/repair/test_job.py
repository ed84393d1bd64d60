"""The pause of a repair job after a batch, by a clock that only the job moves."""

from __future__ import annotations

import pytest

from spark_tools.repair.job import PAUSE_MS, pause_after
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize(
    ("outcomes", "pause_ms"),
    [
        ({"waiting": 1}, PAUSE_MS),
        ({"failed": 1}, PAUSE_MS),
        ({"waiting": 3, "repaired": 3, "failed": 2, "given_up": 1}, PAUSE_MS),
        ({"waiting": 3, "repaired": 3, "failed": 1, "given_up": 1}, 0),
        ({"repaired": 1}, 0),
        ({}, 0),
    ],
)
def test_pause_when_most_letters_go_back_then_so_long_and_else_not_at_all(
    outcomes: dict[str, int], pause_ms: int
) -> None:
    clock = FakeClock()
    before_ms = clock.monotonic_ms()

    pause_after(outcomes, clock, lambda: False)

    assert clock.monotonic_ms() - before_ms == pause_ms


def test_pause_when_stopped_then_over_within_a_second() -> None:
    clock = FakeClock()
    before_ms = clock.monotonic_ms()

    pause_after({"waiting": 1}, clock, lambda: clock.monotonic_ms() >= before_ms + 2_500)

    assert clock.monotonic_ms() - before_ms == 3_000
