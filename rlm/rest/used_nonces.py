"""Which signed requests were taken already, so that a recorded one cannot be sent again."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush
from threading import Lock


class NonceUse(Enum):
    """What becomes of a request by its nonce and time."""

    FRESH = "fresh"
    REPLAYED = "replayed"
    OUTSIDE_WINDOW = "outside_window"
    FULL = "full"


class UsedNonces:
    """The nonces of a window of time around now. Thread-safe.

    A request whose time is further from now than `window_ms` is refused, so its nonce need not be
    kept longer. Memory: `max_count` nonces, about 200 bytes each; when all are in use no request
    is taken, because a nonce that was dropped early could be used again.
    """

    def __init__(self, *, window_ms: int, max_count: int, now_ms: Callable[[], int]) -> None:
        self._window_ms = window_ms
        self._max_count = max_count
        self._now_ms = now_ms
        self._used: set[bytes] = set()
        self._by_end: list[tuple[int, bytes]] = []
        self._lock = Lock()

    def use(self, nonce: bytes, time_ms: int) -> NonceUse:
        """Use a nonce of a request made at that time. Only of requests whose signature is right."""
        with self._lock:
            now_ms = self._now_ms()
            if abs(now_ms - time_ms) > self._window_ms:
                return NonceUse.OUTSIDE_WINDOW
            while self._by_end and self._by_end[0][0] < now_ms:
                self._used.discard(heappop(self._by_end)[1])
            if nonce in self._used:
                return NonceUse.REPLAYED
            if len(self._used) >= self._max_count:
                return NonceUse.FULL
            self._used.add(nonce)
            heappush(self._by_end, (time_ms + self._window_ms, nonce))
            return NonceUse.FRESH
