"""Pauses between attempts at what keeps failing: doubled each time, one count per key."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

from rsm.segment.clock import Clock

LONGEST_PAUSE_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How often something failed in a row, and when the first of these was (wall clock)."""

    count: int
    first_ms: int
    not_before_ms: int


class RetryPauses:
    """Remembers what failed last. Thread-safe. Memory: one entry per key that is failing now."""

    def __init__(
        self, clock: Clock, *, first_pause_ms: int, longest_pause_ms: int = LONGEST_PAUSE_MS
    ) -> None:
        self._clock = clock
        self._first_pause_ms = first_pause_ms
        self._longest_pause_ms = longest_pause_ms
        self._failures: dict[Hashable, Failures] = {}
        self._lock = Lock()

    def pausing(self, key: Hashable) -> bool:
        """Whether it is too early to try again."""
        with self._lock:
            failures = self._failures.get(key)
        return failures is not None and self._clock.monotonic_ms() < failures.not_before_ms

    def failed(self, key: Hashable) -> Failures:
        """Count one more failure, and begin its pause."""
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
        """How many keys are failing now."""
        with self._lock:
            return len(self._failures)

    def ended(self, key: Hashable) -> None:
        """It succeeded, or was given up: forget its failures."""
        with self._lock:
            self._failures.pop(key, None)

    def forget_left(self) -> None:
        """Forget the keys whose pause has been over for longer than the longest lasts.

        Somebody else may have done with them; for one that is only slow it begins again.
        """
        left_before_ms = self._clock.monotonic_ms() - self._longest_pause_ms
        with self._lock:
            left = [
                key for key, each in self._failures.items() if each.not_before_ms < left_before_ms
            ]
            for key in left:
                del self._failures[key]
