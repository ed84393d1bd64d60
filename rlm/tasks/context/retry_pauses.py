"""Doubles the pause after each failed attempt, counted per key."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

from rsm.segment.clock import Clock

LONGEST_PAUSE_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Represents consecutive failures of one key: their count and the wall time of the first."""

    count: int
    first_ms: int
    not_before_ms: int


class RetryPauses:
    """Remembers failures and their pauses. Thread-safe. Memory: one entry per failing key."""

    def __init__(
        self, clock: Clock, *, first_pause_ms: int, longest_pause_ms: int = LONGEST_PAUSE_MS
    ) -> None:
        self._clock = clock
        self._first_pause_ms = first_pause_ms
        self._longest_pause_ms = longest_pause_ms
        self._failures: dict[Hashable, Failures] = {}
        self._lock = Lock()

    def pausing(self, key: Hashable) -> bool:
        with self._lock:
            failures = self._failures.get(key)
        return failures is not None and self._clock.monotonic_ms() < failures.not_before_ms

    def failed(self, key: Hashable) -> Failures:
        """Count one more failure and start its pause."""
        with self._lock:
            before = self._failures.get(key)
            count = 1 if before is None else before.count + 1
            pause_ms = min(self._first_pause_ms << min(count - 1, 30), self._longest_pause_ms)
            failures = Failures(
                count=count,
                first_ms=self._clock.wall_ms() if before is None else before.first_ms,
                not_before_ms=self._clock.monotonic_ms() + pause_ms,
            )
            self._failures[key] = failures
        return failures

    @property
    def failing_count(self) -> int:
        with self._lock:
            return len(self._failures)

    def ended(self, key: Hashable) -> None:
        """Forget the failures of a key that succeeded or was given up."""
        with self._lock:
            self._failures.pop(key, None)

    def forget_left(self) -> None:
        """Forget the keys whose pause ended longer ago than the longest pause.

        Another process may have finished them. If one is only slow, its pauses start again at the
        first.
        """
        left_before_ms = self._clock.monotonic_ms() - self._longest_pause_ms
        with self._lock:
            left = [
                key for key, each in self._failures.items() if each.not_before_ms < left_before_ms
            ]
            for key in left:
                del self._failures[key]
