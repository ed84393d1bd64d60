"""RangeSize: how much of a segment to read at once, by the store's latency and throughput. Pure.

The transfer of a range should take as long as the store takes to start. A smaller range mostly
waits; a larger one uses memory for little gain. A store with a high latency thus gets fewer and
larger requests. So does a very fast one, such as a directory, where this process's overhead is the
latency. Small reads show the latency, large ones the throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_WEIGHT = 0.125  # of the newest measurement in an average
_LEAST_MS = 20.0  # for a range's transfer, so that this process's overhead is small
_SHARE_PARTS = 4  # ranges that a share has room for, so that some can be prefetched


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
    """Measurements of a store, of small and large reads separately; immutable.

    Ranges are `least_bytes` doubled repeatedly, `most_bytes` at most.
    """

    least_bytes: int
    most_bytes: int
    small: _Average | None = None
    large: _Average | None = None

    def after(self, size_bytes: int, duration_ms: float) -> RangeSize:
        """Return the measurements with one more read."""
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
        """Return the range size by measurements; one kind of reads alone counts as throughput."""
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
