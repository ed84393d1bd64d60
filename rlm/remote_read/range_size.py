"""How much of a segment to read at once: by how long the store takes to begin, and to go on. Pure.

A range should take as long to be carried over as the store took to begin: with less most of the
time is waited, with more memory is held for little. So a store that is slow to begin is asked for
larger ranges, and less often. So is one that hands over much in no time, such as a directory: there
it is we who are slow to begin. How long the store takes to begin is seen where little was read, how
fast it goes on where much was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_WEIGHT = 0.125  # of the newest in an average
_LEAST_MS = 20.0  # to carry a range over: what it costs us beside is little then
_SHARE_PARTS = 4  # beside the range that is read now there is to be room for some ahead


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
    """What was measured of a store, small reads and large ones apart; a value.

    Ranges are `least_bytes` doubled, `most_bytes` at most.
    """

    least_bytes: int
    most_bytes: int
    small: _Average | None = None
    large: _Average | None = None

    def after(self, size_bytes: int, duration_ms: float) -> RangeSize:
        """A read of so many bytes took so long."""
        if 2 * size_bytes <= self.least_bytes:
            return replace(self, small=_averaged(self.small, size_bytes, duration_ms))
        return replace(self, large=_averaged(self.large, size_bytes, duration_ms))

    def size_bytes(self, *, share_bytes: int) -> int:
        """How much to read at once for a reader that may hold so much."""
        limit_bytes = min(self.most_bytes, share_bytes // _SHARE_PARTS, self._worthwhile_bytes())
        found = self.least_bytes
        while 2 * found <= limit_bytes:
            found *= 2
        return found

    def _worthwhile_bytes(self) -> int:
        """By what is known: of one kind of reads alone, all of their time counts as going on."""
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
