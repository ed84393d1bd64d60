"""Clock: an interface for waits and timestamps, so that tests can replace the real time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps, monotonic time for deadlines. Implementations are thread-safe."""

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch; may jump."""

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary start; never decreases."""

    def sleep_ms(self, duration_ms: int) -> None:
        """Return after about `duration_ms` of monotonic time."""
