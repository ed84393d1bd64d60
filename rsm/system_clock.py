"""The operating system's clock; program entry points pass it to the code that takes a Clock."""

from __future__ import annotations

import time


class SystemClock:
    """The operating system's clock, an implementation of `rsm.segment.clock.Clock`."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000)
