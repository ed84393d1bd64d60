"""How far to read ahead of a reader: by whether what it asks for is there when it asks. Pure.

A reader that has to wait for what was read ahead consumes faster than the store answers: several
times as much is under way from then on, so that the depth is soon what the reader consumes while
the store answers once; for each step there it waits. One that never waits needs less, down to the
least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# So many chunks in a row were there in time before one less is read ahead: rare, as one that comes
# too late costs the reader a whole answer of the store.
_CALM_COUNT = 16

_DEEPER_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAheadDepth:
    """How much is to be read ahead of one reader, between a least and a most, in chunks.

    What is read at once may be larger than these chunks.
    """

    chunk_bytes: int
    least_count: int
    most_count: int
    chunk_count: int
    in_time_count: int = 0

    @classmethod
    def begin(cls, *, least_bytes: int, most_bytes: int, chunk_bytes: int) -> ReadAheadDepth:
        """Of a reader of which nothing is known; in whole chunks that cover the bytes given."""
        least_count, most_count = (-(-size // chunk_bytes) for size in (least_bytes, most_bytes))
        return cls(
            chunk_bytes=chunk_bytes,
            least_count=least_count,
            most_count=most_count,
            chunk_count=least_count,
        )

    def after_waiting(self) -> ReadAheadDepth:
        """The reader has asked for what is still being read ahead of it."""
        deeper = min(max(_DEEPER_FACTOR * self.chunk_count, 1), self.most_count)
        return replace(self, chunk_count=deeper, in_time_count=0)

    def after_in_time(self) -> ReadAheadDepth:
        """The reader has asked for the next chunk, and it was there."""
        if self.in_time_count + 1 < _CALM_COUNT:
            return replace(self, in_time_count=self.in_time_count + 1)
        shallower = max(self.chunk_count - 1, self.least_count)
        return replace(self, chunk_count=shallower, in_time_count=0)

    def bytes_for(self, given_bytes: int) -> int:
        """How much to read ahead of a reader that was just given so much.

        It is expected to ask for as much again, while as much as ever is under way behind it.
        """
        wanted_count = self.chunk_count + given_bytes // self.chunk_bytes
        return self.chunk_bytes * min(wanted_count, max(self.most_count, self.chunk_count))
