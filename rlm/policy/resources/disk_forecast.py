"""Forecasts when a disk will be full, from recent samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class DiskSample(NamedTuple):
    """Represents the used bytes of a disk at a monotonic time."""

    at_ms: int
    used_bytes: int


def full_in_ms(samples: Sequence[DiskSample], total_bytes: int) -> int | None:
    """Return the time until the disk is full at the mean rate of the samples; 0 if it is full.

    Returns None if there are no samples, or the used bytes did not grow.
    """
    if not samples:
        return None
    first, last = samples[0], samples[-1]
    free_bytes = total_bytes - last.used_bytes
    if free_bytes <= 0:
        return 0
    grown_bytes, took_ms = last.used_bytes - first.used_bytes, last.at_ms - first.at_ms
    if grown_bytes <= 0 or took_ms <= 0:
        return None
    return free_bytes * took_ms // grown_bytes
