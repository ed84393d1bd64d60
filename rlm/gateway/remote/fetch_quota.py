"""FetchQuota: limits the bytes per second that clients receive from the store (KIP-956). Pure.

A token bucket fills at `bytes_per_second`, up to the amount of all windows. Each response takes its
bytes from the bucket, whose level may become negative. Over a long period, the average rate is at
most `bytes_per_second`. After a pause, at most the amount of all windows is available. The bucket
starts with the amount of one window.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlm.config.values import UNLIMITED_BYTES_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchQuotaSettings:
    """Represents Kafka's `remote.log.manager.fetch.max.bytes.per.second` and its windows."""

    bytes_per_second: int = UNLIMITED_BYTES_PER_SECOND
    window_count: int = 11
    window_ms: int = 1_000

    def __post_init__(self) -> None:
        if min(self.bytes_per_second, self.window_count, self.window_ms) < 1:
            raise ValueError(f"the fetch quota is invalid: each value must be at least 1: {self}")


class FetchQuota:
    """Represents the token bucket. Not thread-safe. `now_ms` is always monotonic time."""

    def __init__(self, settings: FetchQuotaSettings, now_ms: int) -> None:
        self._settings = settings
        self._is_limited = settings.bytes_per_second < UNLIMITED_BYTES_PER_SECOND
        # The unit is 1/1000 byte, so that the amount per millisecond is a whole number.
        self._most = settings.bytes_per_second * settings.window_ms * settings.window_count
        self._available = settings.bytes_per_second * settings.window_ms
        self._filled_ms = now_ms

    def charge(self, size_bytes: int, now_ms: int) -> None:
        """Charge the bytes that a client received to the bucket."""
        if self._is_limited:
            self._fill(now_ms)
            self._available -= size_bytes * 1_000

    def throttle_ms(self, now_ms: int, *, reserved_bytes: int = 0) -> int:
        """Return how long new fetches must wait; 0 if they need not.

        `reserved_bytes`: the expected bytes of all fetches that already have a permit.
        """
        if not self._is_limited:
            return 0
        self._fill(now_ms)
        missing = reserved_bytes * 1_000 - self._available
        if missing < 0:
            return 0
        return missing // self._settings.bytes_per_second + 1

    def _fill(self, now_ms: int) -> None:
        passed_ms = max(now_ms - self._filled_ms, 0)
        self._filled_ms = max(now_ms, self._filled_ms)
        self._available = min(
            self._available + passed_ms * self._settings.bytes_per_second, self._most
        )
