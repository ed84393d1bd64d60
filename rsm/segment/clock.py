"""Time as an argument: what code that waits or stamps is handed instead of the time module."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time for stamps, monotonic time for deadlines. Implementations are thread-safe."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""

    def monotonic_ms(self) -> int:
        """Milliseconds from an arbitrary start; never goes back."""

    def sleep_ms(self, duration_ms: int) -> None:
        """Return after about `duration_ms` of monotonic time."""
