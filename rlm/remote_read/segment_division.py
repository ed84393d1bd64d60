"""SegmentDivision: chooses the chunk size of each segment from measurements of the store.

The first reader of a segment fixes the size for all, because readers share chunks.

The transfer of a chunk should take as long as the store's latency. The read of a smaller chunk
mostly waits; a larger chunk uses memory for little gain. A store with a high latency thus gets
fewer and larger requests. So does a very fast store, such as a directory, because this process's
overhead counts as latency. Small reads show the latency, large reads the throughput.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from rsm.segment.ids import RemoteLogSegmentId

# Above this count, the size of the oldest segment is forgotten. The next read divides the segment
# again, and its old chunks age out of the cache.
_LIMIT_COUNT = 10_000
_WEIGHT = 0.125  # The newest measurement has this weight in an average.
_LEAST_MS = 20.0  # Reading a range takes at least this long, so this process's overhead is small.
_SHARE_PARTS = 4  # This many ranges fit into a share, so that some can be prefetched.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Average:
    size_bytes: float
    duration_ms: float

    def with_one_more(self, size_bytes: int, duration_ms: float) -> _Average:
        return _Average(
            size_bytes=self.size_bytes + _WEIGHT * (size_bytes - self.size_bytes),
            duration_ms=self.duration_ms + _WEIGHT * (duration_ms - self.duration_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSize:
    """Computes the size of a segment's ranges from the latency and throughput of the store.

    Immutable. Contains averages of small and of large reads. A range is `least_bytes` times a power
    of two, at most `most_bytes`.
    """

    least_bytes: int
    most_bytes: int
    small: _Average | None = None
    large: _Average | None = None

    def after(self, size_bytes: int, duration_ms: float) -> RangeSize:
        """Return a copy that includes one more measured read."""
        if 2 * size_bytes <= self.least_bytes:
            return replace(self, small=_averaged(self.small, size_bytes, duration_ms))
        return replace(self, large=_averaged(self.large, size_bytes, duration_ms))

    def size_bytes(self, *, share_bytes: int) -> int:
        """Return how much to read at once for a reader that may use `share_bytes`."""
        limit_bytes = min(self.most_bytes, share_bytes // _SHARE_PARTS, self._worthwhile_bytes())
        found = self.least_bytes
        while 2 * found <= limit_bytes:
            found *= 2
        return found

    def _worthwhile_bytes(self) -> int:
        """Return the range size from the measurements.

        If only small or only large reads were measured, the latency counts as 0.
        """
        nothing = _Average(size_bytes=0.0, duration_ms=0.0)
        less = self.small if self.small and self.large else nothing
        more = self.large or self.small or nothing
        more_bytes = more.size_bytes - less.size_bytes
        more_ms = more.duration_ms - less.duration_ms
        if not more_bytes:
            return self.least_bytes
        if more_ms <= 0:
            return self.most_bytes
        bytes_per_ms = more_bytes / more_ms
        begin_ms = less.duration_ms - less.size_bytes / bytes_per_ms
        return int(min(max(begin_ms, _LEAST_MS) * bytes_per_ms, self.most_bytes))


def _averaged(average: _Average | None, size_bytes: int, duration_ms: float) -> _Average:
    if average is None:
        return _Average(size_bytes=size_bytes, duration_ms=duration_ms)
    return average.with_one_more(size_bytes, duration_ms)


class SegmentDivision:
    """Represents the chunk sizes of segments. Thread-safe. Memory: 2 MB.

    `share_bytes` returns how much memory a reader may use now.
    """

    def __init__(
        self, *, least_bytes: int, most_bytes: int, share_bytes: Callable[[], int]
    ) -> None:
        self._share_bytes = share_bytes
        self._size = RangeSize(least_bytes=least_bytes, most_bytes=most_bytes)
        self._known: OrderedDict[int, int] = OrderedDict()  # It maps segment ids to chunk sizes.
        self._lock = threading.Lock()

    def known_chunk_bytes(self, segment_id: RemoteLogSegmentId) -> int | None:
        """Return the segment's chunk size; None if the segment is not divided yet."""
        return self._known.get(segment_id.id.int)

    def chunk_bytes(self, segment_id: RemoteLogSegmentId) -> int:
        """Return the segment's chunk size, and fix it if the segment is not divided yet."""
        known = self._known.get(segment_id.id.int)
        if known is not None:
            return known
        share_bytes = self._share_bytes()
        with self._lock:
            chunk_bytes = self._size.size_bytes(share_bytes=share_bytes)
            chunk_bytes = self._known.setdefault(segment_id.id.int, chunk_bytes)
            if len(self._known) > _LIMIT_COUNT:
                self._known.popitem(last=False)
        return chunk_bytes

    def record_read(self, size_bytes: int, duration_ms: float) -> None:
        with self._lock:
            self._size = self._size.after(size_bytes, duration_ms)
