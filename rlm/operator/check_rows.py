"""The rows of a check as they become known, and waiting with a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rlm.policy.request.canary import CheckResult, CheckRow
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError

POLL_MS = 500


@dataclass(slots=True)
class CheckStep:
    """One row under way. `skipped`, set before an error: the error is no fault of the cluster."""

    skipped: bool = False
    passed: bool = False


class CheckRows:
    """Collects rows in order and reports each at once. One thread's."""

    def __init__(self, clock: Clock, report: Callable[[CheckRow], None]) -> None:
        self._clock = clock
        self._report = report
        self._rows: list[CheckRow] = []

    @property
    def all(self) -> tuple[CheckRow, ...]:
        """The rows so far."""
        return tuple(self._rows)

    def add(self, row: CheckRow) -> None:
        """Add a row that is known."""
        self._rows.append(row)
        self._report(row)

    @contextmanager
    def step(self, check: str, target: str) -> Iterator[CheckStep]:
        """A row for what the block does: failed with the error that it raises, which ends here."""
        started_ms = self._clock.monotonic_ms()
        step = CheckStep()
        problem = ""
        try:
            yield step
        except TieredStorageError as error:
            problem = str(error)
        step.passed = not problem
        failed = CheckResult.SKIPPED if step.skipped else CheckResult.FAILED
        self.add(
            CheckRow(
                check=check,
                target=target,
                result=failed if problem else CheckResult.PASSED,
                duration_ms=self._clock.monotonic_ms() - started_ms,
                problem=problem,
            )
        )


def holds_within(clock: Clock, limit_ms: int, condition: Callable[[], bool]) -> bool:
    """Whether a condition holds before the limit; asked at least once.

    A condition that raises RetriableError does not hold yet; at the limit the error is raised.
    """
    give_up_ms = clock.monotonic_ms() + limit_ms
    while True:
        try:
            if condition():
                return True
        except RetriableError:
            if clock.monotonic_ms() >= give_up_ms:
                raise
        if clock.monotonic_ms() >= give_up_ms:
            return False
        clock.sleep_ms(POLL_MS)
