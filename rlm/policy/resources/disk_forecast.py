"""When a disk will be full, by how it filled lately. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class DiskSample(NamedTuple):
    """How much of a disk was used at a monotonic time."""

    at_ms: int
    used_bytes: int


def full_in_ms(samples: Sequence[DiskSample], total_bytes: int) -> int | None:
    """The time until nothing is free, at the mean rate of these samples; None if it does not fill.

    0 if it is full.
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
