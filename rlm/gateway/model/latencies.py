"""Latencies: a histogram of durations. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

_BOUNDS_S = (
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
)


class Latencies:
    """Counts durations in buckets. One thread writes, any may read."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, duration_s: float) -> None:
        self._counts[bisect_left(_BOUNDS_S, duration_s)] += 1
        self.sum_s += duration_s

    def buckets(self) -> Sequence[tuple[str, int]]:
        """Return how many durations are within each bound in seconds; the last bound is `+Inf`."""
        buckets: list[tuple[str, int]] = []
        count = 0
        for bound, counted in zip((*map(str, _BOUNDS_S), "+Inf"), self._counts, strict=True):
            count += counted
            buckets.append((bound, count))
        return buckets
