"""Represents the positions and offsets of consecutive batches. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from rsm.segment.errors import CorruptError


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedBatch:
    """Represents the offsets and the log positions of one or more batches, both half-open."""

    position: int
    end_position: int
    base_offset: int
    next_offset: int


class BatchRun:
    """Represents adjoining whole batches, the first of which begins at `position`.

    Not thread-safe. The first batch has no offset below `at_least_offset`. Memory: 24 bytes for
    each batch, at most 2/5 of the size of a v2 batch.
    """

    __slots__ = ("_at_least_offset", "_base_offsets", "_bounds", "_next_offsets")

    def __init__(self, position: int, *, at_least_offset: int = 0) -> None:
        self._at_least_offset = at_least_offset
        self._bounds = array("q", (position,))
        self._base_offsets = array("q")
        self._next_offsets = array("q")

    def __len__(self) -> int:
        return len(self._next_offsets)

    def __getitem__(self, number: int) -> LocatedBatch:
        return LocatedBatch(
            position=self._bounds[number],
            end_position=self._bounds[number + 1],
            base_offset=self._base_offsets[number],
            next_offset=self._next_offsets[number],
        )

    def span(
        self, position: int, *, limit_position: int, end_offset: int, at_least_count: int
    ) -> LocatedBatch | None:
        """Return the extent of the batches that begin at `position`; None if there are none.

        Includes the batches that end at or below `limit_position` and `end_offset`. The first
        `at_least_count` batches may exceed `limit_position`, but not `end_offset`.
        """
        bounds = self._bounds
        first = bisect_left(bounds, position)
        count = max(self.within(limit_position), min(first + at_least_count, len(bounds) - 1))
        count = min(count, self.above(end_offset))
        if first >= count or bounds[first] != position:
            return None
        return LocatedBatch(
            position=position,
            end_position=bounds[count],
            base_offset=self._base_offsets[first],
            next_offset=self._next_offsets[count - 1],
        )

    @property
    def position(self) -> int:
        return self._bounds[0]

    @property
    def end_position(self) -> int:
        """Return the position of the next batch."""
        return self._bounds[-1]

    @property
    def next_offset(self) -> int:
        """Return the lowest valid offset of the next batch."""
        return self._next_offsets[-1] if self._next_offsets else self._at_least_offset

    def append(self, end_position: int, base_offset: int, next_offset: int) -> None:
        """Add the next batch, which ends at `end_position`."""
        self._bounds.append(end_position)
        self._base_offsets.append(base_offset)
        self._next_offsets.append(next_offset)

    def extend(self, other: BatchRun) -> None:
        """Add the run that begins at `end_position`."""
        self._bounds.extend(other._bounds[1:])
        self._base_offsets.extend(other._base_offsets)
        self._next_offsets.extend(other._next_offsets)

    def require_start(self, position: int, *, at_least_offset: int) -> None:
        """Raise CorruptError unless a batch at or above `at_least_offset` begins at `position`.

        `position` may also be the end of the run. If the run is empty, `at_least_offset` then also
        limits the offsets of the first batch.
        """
        number = bisect_left(self._bounds, position)
        if number == len(self._bounds) or self._bounds[number] != position:
            raise CorruptError("no batch begins at the position", position=position)
        if number < len(self):
            base_offset = self._base_offsets[number]
            if base_offset < at_least_offset:
                expected, found = f">= {at_least_offset}", base_offset
                raise CorruptError(
                    "the log is corrupt: the batch's offsets are outside the expected range",
                    position=position,
                    expected=expected,
                    found=found,
                )
        elif not number:
            self._at_least_offset = max(self._at_least_offset, at_least_offset)

    def above(self, offset: int) -> int:
        """Return the index of the first batch with an offset >= `offset`; if none, the length."""
        return bisect_right(self._next_offsets, offset)

    def within(self, position: int) -> int:
        """Return how many of the batches end at or below `position`."""
        return bisect_right(self._bounds, position) - 1
