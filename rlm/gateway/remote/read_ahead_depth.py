"""ReadAheadDepth: how far to prefetch for a reader, from how often it waits for data. Pure.

A reader that waits for prefetched data consumes faster than the store responds. Each such wait
multiplies the depth, until it covers what the reader consumes during one response of the store. If
the reader never waits, the depth shrinks to the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# The depth shrinks by one chunk after this many chunks that were in memory in time. The number is
# high, because a late chunk costs the reader a full response time of the store.
_CALM_COUNT = 16

_DEEPER_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAheadDepth:
    """How much to prefetch for one reader, in chunks, between a minimum and a maximum.

    The cache's own chunks may be larger than `chunk_bytes`.
    """

    chunk_bytes: int
    least_count: int
    most_count: int
    chunk_count: int
    in_time_count: int = 0

    @classmethod
    def begin(cls, *, least_bytes: int, most_bytes: int, chunk_bytes: int) -> ReadAheadDepth:
        """Return the depth of a new reader, in whole chunks that cover the given bytes."""
        least_count, most_count = (-(-size // chunk_bytes) for size in (least_bytes, most_bytes))
        return cls(
            chunk_bytes=chunk_bytes,
            least_count=least_count,
            most_count=most_count,
            chunk_count=least_count,
        )

    def after_waiting(self) -> ReadAheadDepth:
        """Return the depth after the reader requested data that was still being prefetched."""
        deeper = min(max(_DEEPER_FACTOR * self.chunk_count, 1), self.most_count)
        return replace(self, chunk_count=deeper, in_time_count=0)

    def after_in_time(self) -> ReadAheadDepth:
        """Return the depth after the reader requested a chunk that was already in memory."""
        if self.in_time_count + 1 < _CALM_COUNT:
            return replace(self, in_time_count=self.in_time_count + 1)
        shallower = max(self.chunk_count - 1, self.least_count)
        return replace(self, chunk_count=shallower, in_time_count=0)

    def bytes_for(self, given_bytes: int) -> int:
        """Return how much to prefetch for a reader that just received `given_bytes`.

        The reader will probably request as much again; after that, the full depth is in flight.
        """
        wanted_count = self.chunk_count + given_bytes // self.chunk_bytes
        return self.chunk_bytes * min(wanted_count, max(self.most_count, self.chunk_count))
