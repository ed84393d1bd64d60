"""Remembers the nonces of accepted requests, so that nobody can replay a captured request."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush
from threading import Lock


class NonceUse(Enum):
    """Represents whether a request's nonce is accepted, and if not, why."""

    FRESH = "fresh"
    REPLAYED = "replayed"
    OUTSIDE_WINDOW = "outside_window"
    FULL = "full"


class UsedNonces:
    """Represents the nonces of a time window around now. Thread-safe.

    A request whose time differs from now by more than `window_ms` is refused, so its nonce can then
    be dropped. Memory: `max_count` nonces, about 200 bytes each. While all are in use, new
    requests are refused, because a nonce that was dropped early could be used again.
    """

    def __init__(self, *, window_ms: int, max_count: int, now_ms: Callable[[], int]) -> None:
        self._window_ms = window_ms
        self._max_count = max_count
        self._now_ms = now_ms
        self._used: set[bytes] = set()
        self._by_end: list[tuple[int, bytes]] = []
        self._lock = Lock()

    def use(self, nonce: bytes, time_ms: int) -> NonceUse:
        """Use the nonce of a request made at `time_ms`; call this after the signature check."""
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
