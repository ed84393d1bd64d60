from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from rlm.worker.periodic import Periodic
from rsm.segment.errors import NotFoundError, RetriableError
from tests.fakes.clock import FakeClock
from tests.services.waiting import wait_until

HOUR_MS = 3_600_000


def _periodic(step: Callable[[], object], clock: FakeClock | None = None) -> Periodic:
    return Periodic(
        "counting",
        step,
        interval_ms=HOUR_MS,
        failed=lambda *_: None,
        clock=clock or FakeClock(),
    )


def _counting(calls: list[int]) -> Periodic:
    return _periodic(lambda: calls.append(1))


class Steps:
    """Steps with scripted errors, and the levels that they were logged with."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.error: BaseException | None = None
        self.clock = FakeClock()
        self.done = 0
        self.periodic = _periodic(self._step, self.clock)
        self._caplog = caplog
        caplog.set_level(logging.INFO, "rlm.worker.periodic")

    def run(self, error: BaseException | None) -> None:
        """Run one step, which raises this error or none."""
        self.error = error
        before = self.done
        if before:
            self.periodic.wake()
        else:
            self.periodic.start()
        wait_until(lambda: self.done > before and self.periodic.problem() is error, 30.0, "a step")

    def levels(self) -> list[str]:
        """Return the levels of the logged lines."""
        self.periodic.stop()
        assert self.periodic.join(30_000)
        return [record.levelname for record in self._caplog.records]

    def _step(self) -> None:
        self.done += 1
        if self.error is not None:
            raise self.error


def test_failure_when_others_start_next_to_it_then_no_warning_before_ten_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = Steps(caplog)

    steps.run(RetriableError("not there yet"))
    steps.clock.advance(9_999)
    steps.run(RetriableError("not there yet"))
    steps.clock.advance(1)
    steps.run(RetriableError("not there yet"))
    steps.run(RetriableError("not there yet"))

    assert steps.levels() == ["INFO", "WARNING"]


def test_failure_when_a_step_has_succeeded_before_then_is_a_warning_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = Steps(caplog)

    steps.run(None)
    steps.run(RetriableError("gone"))

    assert steps.levels() == ["WARNING"]


def test_failure_when_it_does_not_go_by_itself_then_is_a_warning_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = Steps(caplog)

    steps.run(NotFoundError("the bucket does not exist"))

    assert steps.levels() == ["WARNING"]


def test_failures_when_they_take_turns_then_each_is_logged_once_until_a_step_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If a broker is down, failed attempts to connect and pauses between them take turns."""
    steps = Steps(caplog)

    steps.run(None)
    for attempt in range(3):
        steps.run(RetriableError("connection refused", attempt=attempt))
        steps.run(RetriableError("could not be reached a moment ago", pause_ms=100 << attempt))
    steps.run(None)
    steps.run(RetriableError("connection refused", attempt=0))

    assert steps.levels() == ["WARNING", "WARNING", "WARNING"]


def test_failure_when_it_becomes_another_then_is_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = Steps(caplog)

    steps.run(None)
    steps.run(RetriableError("connection refused"))
    steps.run(RetriableError("not registered in the cluster"))

    assert steps.levels() == ["WARNING", "WARNING"]


def test_step_when_a_library_panics_then_is_logged_and_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The panic of an extension in Rust is no Exception."""
    steps = Steps(caplog)

    steps.run(SystemExit("panicked"))
    steps.run(None)

    assert steps.levels() == ["ERROR"]


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


def test_end_when_running_then_one_more_step_and_no_further() -> None:
    calls: list[int] = []
    periodic = _counting(calls)
    periodic.start()
    wait_until(lambda: calls == [1], 30.0, "the first step")

    assert periodic.end(30_000)
    periodic.wake()

    assert calls == [1, 1]
