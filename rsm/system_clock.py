"""Implements Clock; program entry points pass the implementation to the code that needs it."""

from __future__ import annotations

import time


class SystemClock:
    """Reads the operating system's clocks (rsm.segment.clock.Clock). Thread-safe."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000)
