"""How long to wait before a process that ended is started again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

_JITTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffSettings:
    """Pauses double from `initial_ms` to `max_ms`; `stable_ms` of uptime begins again."""

    initial_ms: int
    max_ms: int
    stable_ms: int = 60_000


class RestartBackoff:
    """The pauses of one process. Not thread-safe."""

    def __init__(self, settings: BackoffSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._failure_count = 0

    def next_pause_ms(self, uptime_ms: int) -> int:
        """The pause after an end that followed `uptime_ms` of running; at most `max_ms`."""
        settings = self._settings
        if uptime_ms >= settings.stable_ms:
            self._failure_count = 0
        # The shift is bounded: past 2**31 every pause is the longest one.
        pause_ms = min(settings.initial_ms << min(self._failure_count, 31), settings.max_ms)
        self._failure_count += 1
        return min(
            settings.max_ms, round(pause_ms * self._random.uniform(1 - _JITTER, 1 + _JITTER))
        )
