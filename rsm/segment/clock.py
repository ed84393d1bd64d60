"""Defines an interface for waits and timestamps, so that tests can replace real time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Provides wall time for timestamps, and monotonic time for deadlines and waits.

    Implementations are thread-safe.
    """

    def wall_ms(self) -> int:
        """Return the milliseconds since 1970-01-01 UTC; the value may jump."""

    def monotonic_ms(self) -> int:
        """Return the milliseconds since an arbitrary start; the value never decreases."""

    def sleep_ms(self, duration_ms: int) -> None:
        """Return after about `duration_ms` of monotonic time."""
