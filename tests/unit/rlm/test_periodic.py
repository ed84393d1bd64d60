from __future__ import annotations

from rlm.periodic import Periodic
from tests.services.waiting import wait_until

HOUR_MS = 3_600_000


def _counting(calls: list[int]) -> Periodic:
    return Periodic(
        "counting", lambda: calls.append(1), interval_ms=HOUR_MS, failed=lambda *_: None
    )


def test_step_when_woken_then_does_not_wait_for_the_interval() -> None:
    calls: list[int] = []
    periodic = _counting(calls)
    periodic.start()
    wait_until(lambda: len(calls) == 1, 30.0, "the first step")

    periodic.wake()

    wait_until(lambda: len(calls) == 2, 30.0, "the step that was asked for")
    periodic.stop()
    assert periodic.join(30_000)
    assert len(calls) == 2


def test_step_when_stopped_at_once_then_ends_without_waiting() -> None:
    calls: list[int] = []
    periodic = _counting(calls)

    periodic.start()
    periodic.stop()

    assert periodic.join(30_000)
    assert len(calls) <= 1
