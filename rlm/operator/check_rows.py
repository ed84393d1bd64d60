"""Collects the rows of a check, and waits for conditions within a time limit."""

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
    """Represents one running row. An error while `is_skippable` makes it SKIPPED, not FAILED."""

    is_skippable: bool = False
    has_passed: bool = False


class CheckRows:
    """Collects rows in order and reports each at once. Not thread-safe."""

    def __init__(self, clock: Clock, report: Callable[[CheckRow], None]) -> None:
        self._clock = clock
        self._report = report
        self._rows: list[CheckRow] = []

    @property
    def all(self) -> tuple[CheckRow, ...]:
        return tuple(self._rows)

    def add(self, row: CheckRow) -> None:
        self._rows.append(row)
        self._report(row)

    @contextmanager
    def step(self, check: str, target: str) -> Iterator[CheckStep]:
        """Add a row for the block; a TieredStorageError becomes the row's problem."""
        started_ms = self._clock.monotonic_ms()
        step = CheckStep()
        problem = ""
        try:
            yield step
        except TieredStorageError as error:
            problem = str(error)
        step.has_passed = not problem
        failed = CheckResult.SKIPPED if step.is_skippable else CheckResult.FAILED
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
    """Return whether a condition becomes true within the limit; checks it at least once.

    A RetriableError of the condition counts as not true yet; at the limit it is raised.
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
