"""Time that only a test moves."""

from __future__ import annotations


class FakeClock:
    """Both clocks of `rsm.segment.clock.Clock`; a sleep moves them and returns at once."""

    def __init__(self, *, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = 0

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.advance(duration_ms)

    def advance(self, duration_ms: int) -> None:
        """Move both clocks forward."""
        self._wall_ms += duration_ms
        self._monotonic_ms += duration_ms

    def jump_wall(self, by_ms: int) -> None:
        """Set the wall clock only."""
        self._wall_ms += by_ms
