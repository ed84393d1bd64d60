"""The byte rate that all copies of one process share.

Each piece of a segment books the next free time of one line, and waits until then. A copy has one
piece booked at most and all pieces are small, so copies that run at once get equal shares. There is
no burst: what was not used is gone. Source: KIP-956, whose broker admits whole segments; here the
rate is kept within one segment too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

from rsm.segment.clock import Clock
from rsm.segment.local_segment import ContentSource
from rsm.spi import CopyAttempt

UNLIMITED_BYTES_PER_SECOND = (1 << 63) - 1
_LONGEST_NAP_MS = 200
_LEAST_PIECE_BYTES = 16 << 10
_PIECES_PER_SECOND = 8
_READ_PIECE_BYTES = 1 << 20


class CopyThrottle:
    """Thread-safe. `waited` is told each time how many ms a copy was kept waiting."""

    def __init__(
        self, clock: Clock, *, bytes_per_second: int, sharers: int, waited: Callable[[int], None]
    ) -> None:
        """`sharers`: how many copies run at once, at most."""
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._sharers = sharers
        self._waited = waited
        self._free_at_ms = 0.0
        self._lock = Lock()

    @property
    def piece_bytes(self) -> int:
        """No piece is greater, so that a slow rate is kept in short steps."""
        return max(_LEAST_PIECE_BYTES, self._bytes_per_second // _PIECES_PER_SECOND)

    def longest_ms(self, size_bytes: int) -> int:
        """How long that many bytes take at the least share of the rate."""
        if self._bytes_per_second == UNLIMITED_BYTES_PER_SECOND:
            return 0
        return size_bytes * self._sharers * 1000 // self._bytes_per_second

    def wait(self, size_bytes: int, attempt: CopyAttempt) -> None:
        """Return when so many bytes may be copied. Raises as soon as the attempt's check does."""
        if self._bytes_per_second == UNLIMITED_BYTES_PER_SECOND:
            return
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            begin_ms = max(self._free_at_ms, float(now_ms))
            self._free_at_ms = begin_ms + size_bytes * 1000 / self._bytes_per_second
        if begin_ms > now_ms:
            self._waited(int(begin_ms - now_ms))
        while (left_ms := begin_ms - self._clock.monotonic_ms()) > 0:
            attempt.check()
            self._clock.sleep_ms(min(max(1, int(left_ms)), _LONGEST_NAP_MS))


class ThrottledAttempt(CopyAttempt):
    """Waits before each piece of at most 1 MiB that is read. Thread-safe if `attempt` is."""

    def __init__(self, attempt: CopyAttempt, throttle: CopyThrottle) -> None:
        self._attempt = attempt
        self._throttle = throttle

    def check(self) -> None:
        self._attempt.check()
        self._throttle.wait(_READ_PIECE_BYTES, self._attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledContent:
    """A source whose bytes come at the throttle's rate."""

    source: ContentSource
    throttle: CopyThrottle
    attempt: CopyAttempt

    @property
    def length_bytes(self) -> int:
        return self.source.length_bytes

    def chunks(self) -> Iterator[memoryview]:
        size = self.throttle.piece_bytes
        for view in self.source.chunks():
            for position in range(0, len(view), size):
                piece = view[position : position + size]
                self.throttle.wait(len(piece), self.attempt)
                yield piece
