"""ReadAheadDepth: adapts the prefetch depth of a reader to its waits for data. Pure.

A reader that waits for prefetched data consumes faster than the store responds. Each such wait
multiplies the depth, until it covers the reader's consumption during one response time of the
store. While the reader does not wait, the depth shrinks to the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# The depth shrinks by one chunk after this number of chunks that were in memory in time. The number
# is high, because a late chunk costs the reader up to a full response time of the store.
_CALM_COUNT = 16

_DEEPER_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAheadDepth:
    """Represents the prefetch depth of one reader, in chunks, between a minimum and a maximum.

    The cached chunks may be larger than `chunk_bytes`.
    """

    chunk_bytes: int
    least_count: int
    most_count: int
    chunk_count: int
    in_time_count: int = 0

    @classmethod
    def begin(cls, *, least_bytes: int, most_bytes: int, chunk_bytes: int) -> ReadAheadDepth:
        """Return the depth of a new reader; both limits are rounded up to whole chunks."""
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
        """Return how many bytes to prefetch for a reader that just received `given_bytes`.

        The reader will probably request the same amount again. After that request, the full depth
        is still prefetched.
        """
        wanted_count = self.chunk_count + given_bytes // self.chunk_bytes
        return self.chunk_bytes * min(wanted_count, max(self.most_count, self.chunk_count))
