"""Computes the pause before a process that ended is restarted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

_JITTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffSettings:
    """Represents the limits of restart pauses, which double from `initial_ms` to `max_ms`.

    After an uptime of `stable_ms`, the next pause is about `initial_ms` again.
    """

    initial_ms: int
    max_ms: int
    stable_ms: int = 60_000


class RestartBackoff:
    """Represents the pauses of one process. Not thread-safe."""

    def __init__(self, settings: BackoffSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._failure_count = 0

    def next_pause_ms(self, uptime_ms: int) -> int:
        """Return the pause after a process ended with this uptime, at most `max_ms`."""
        settings = self._settings
        if uptime_ms >= settings.stable_ms:
            self._failure_count = 0
        # The inner min bounds the shift: 2**31 ms is above the greatest valid `max_ms`.
        pause_ms = min(settings.initial_ms << min(self._failure_count, 31), settings.max_ms)
        self._failure_count += 1
        return min(
            settings.max_ms, round(pause_ms * self._random.uniform(1 - _JITTER, 1 + _JITTER))
        )
