"""Limits the byte rate that all copies of one process share.

All copies share one queue. Each piece of a segment reserves the next free time and waits until
then. A copy reserves at most one small piece at a time, so concurrent copies get equal shares.
There are no bursts: unused rate is lost. The source is KIP-956, whose broker admits whole segments.
CopyThrottle also limits the rate within a segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

from rlm.config.values import UNLIMITED_BYTES_PER_SECOND
from rsm.segment.clock import Clock
from rsm.segment.local_segment import SizedSource
from rsm.spi import CopyAttempt

_LONGEST_NAP_MS = 200
_LEAST_PIECE_BYTES = 16 << 10
_PIECES_PER_SECOND = 8
_READ_PIECE_BYTES = 1 << 20


class CopyThrottle:
    """Delays copies so that they keep to a byte rate. Thread-safe.

    `waited` receives the milliseconds of each delay.
    """

    def __init__(
        self, clock: Clock, *, bytes_per_second: int, sharers: int, waited: Callable[[int], None]
    ) -> None:
        """Expect at most `sharers` concurrent copies."""
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._sharers = sharers
        self._waited = waited
        self._free_at_ms = 0.0
        self._lock = Lock()

    @property
    def piece_bytes(self) -> int:
        """Return the largest size of a piece, which is small enough for short delays."""
        return max(_LEAST_PIECE_BYTES, self._bytes_per_second // _PIECES_PER_SECOND)

    def longest_ms(self, size_bytes: int) -> int:
        """Return how long `size_bytes` takes if all `sharers` copy at once."""
        if self._bytes_per_second == UNLIMITED_BYTES_PER_SECOND:
            return 0
        return size_bytes * self._sharers * 1000 // self._bytes_per_second

    def wait(self, size_bytes: int, attempt: CopyAttempt) -> None:
        """Wait until `size_bytes` may be copied. Raises the errors of the attempt's check."""
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
    """Represents an attempt whose `check` waits until 1 MiB more may be read.

    Thread-safe if `attempt` is.
    """

    def __init__(self, attempt: CopyAttempt, throttle: CopyThrottle) -> None:
        self._attempt = attempt
        self._throttle = throttle

    def check(self) -> None:
        self._attempt.check()
        self._throttle.wait(_READ_PIECE_BYTES, self._attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledContent:
    """Represents a source that yields its bytes at the throttle's rate."""

    source: SizedSource
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
