"""Doubles the pause after each failed attempt, up to a limit, for one subject or for many keys."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

from rsm.segment.clock import Clock

LONGEST_PAUSE_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Represents consecutive failures: their count and the wall time of the first failure.

    The next attempt waits until `not_before_ms` (monotonic).
    """

    count: int
    first_ms: int
    not_before_ms: int


class BackOff:
    """Computes pauses that double from the first to the longest. Thread-safe; has no state."""

    def __init__(
        self, clock: Clock, *, first_pause_ms: int, longest_pause_ms: int = LONGEST_PAUSE_MS
    ) -> None:
        self._clock = clock
        self._first_pause_ms = first_pause_ms
        self._longest_pause_ms = longest_pause_ms

    def after(self, before: Failures | None) -> Failures:
        """Count one more failure; its pause starts now."""
        count = 1 if before is None else before.count + 1
        pause_ms = min(self._first_pause_ms << min(count - 1, 30), self._longest_pause_ms)
        return Failures(
            count=count,
            first_ms=self._clock.wall_ms() if before is None else before.first_ms,
            not_before_ms=self._clock.monotonic_ms() + pause_ms,
        )

    def is_pausing(self, failures: Failures | None) -> bool:
        return failures is not None and self._clock.monotonic_ms() < failures.not_before_ms

    def is_stale(self, failures: Failures) -> bool:
        """Return whether the pause ended longer ago than the longest pause."""
        return failures.not_before_ms < self._clock.monotonic_ms() - self._longest_pause_ms


class RetryPauses:
    """Remembers failures and their pauses. Thread-safe. Memory: one entry per failing key."""

    def __init__(
        self, clock: Clock, *, first_pause_ms: int, longest_pause_ms: int = LONGEST_PAUSE_MS
    ) -> None:
        self._back_off = BackOff(
            clock, first_pause_ms=first_pause_ms, longest_pause_ms=longest_pause_ms
        )
        self._failures: dict[Hashable, Failures] = {}
        self._lock = Lock()

    def is_pausing(self, key: Hashable) -> bool:
        with self._lock:
            failures = self._failures.get(key)
        return self._back_off.is_pausing(failures)

    def record_failure(self, key: Hashable) -> Failures:
        """Count one more failure and start its pause."""
        with self._lock:
            self._failures[key] = failures = self._back_off.after(self._failures.get(key))
        return failures

    @property
    def failing_count(self) -> int:
        with self._lock:
            return len(self._failures)

    def clear(self, key: Hashable) -> None:
        """Forget the failures of a key that succeeded or was given up."""
        with self._lock:
            self._failures.pop(key, None)

    def forget_stale(self) -> None:
        """Forget the keys whose pause ended longer ago than the longest pause.

        Another process may have finished their work. If a key fails again later, its pauses begin
        with the shortest one.
        """
        with self._lock:
            stale = [key for key, each in self._failures.items() if self._back_off.is_stale(each)]
            for key in stale:
                del self._failures[key]
