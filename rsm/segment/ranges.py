"""Represents half-open ranges of offsets and of bytes; converts from and to inclusive forms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OffsetRange:
    """Represents the offsets [start_offset, end_offset): the end is the first one after them."""

    start_offset: int
    end_offset: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_offset <= self.end_offset:
            raise ValueError(f"the offset range is invalid: {self}, expected 0 <= start <= end")

    @classmethod
    def from_inclusive(cls, first_offset: int, last_offset: int) -> OffsetRange:
        """Convert Kafka's (first, last) form, as in its RemoteLogSegmentMetadata."""
        return cls(start_offset=first_offset, end_offset=last_offset + 1)

    @property
    def last_offset(self) -> int:
        """Return Kafka's inclusive end; start_offset - 1 if the range is empty."""
        return self.end_offset - 1

    def __contains__(self, offset: int) -> bool:
        return self.start_offset <= offset < self.end_offset

    def __len__(self) -> int:
        return self.end_offset - self.start_offset

    def overlaps(self, other: OffsetRange) -> bool:
        return self.start_offset < other.end_offset and other.start_offset < self.end_offset

    def intersection(self, other: OffsetRange) -> OffsetRange:
        """Return the part that this range shares with an overlapping range."""
        return OffsetRange(
            start_offset=max(self.start_offset, other.start_offset),
            end_offset=min(self.end_offset, other.end_offset),
        )

    def __str__(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"


def missing(covered: Iterable[OffsetRange], within: OffsetRange) -> tuple[OffsetRange, ...]:
    """Return the parts of `within` outside of the `covered` ranges, which must ascend."""
    found = []
    position = within.start_offset
    for offsets in covered:
        until_offset = min(offsets.start_offset, within.end_offset)
        if until_offset > position:
            found.append(OffsetRange(start_offset=position, end_offset=until_offset))
        position = max(position, offsets.end_offset)
    if position < within.end_offset:
        found.append(OffsetRange(start_offset=position, end_offset=within.end_offset))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ByteRange:
    """Represents the positions [start_position, end_position) of an object or a file."""

    start_position: int
    end_position: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_position <= self.end_position:
            found = f"[{self.start_position}, {self.end_position})"
            raise ValueError(f"the byte range is invalid: {found}, expected 0 <= start <= end")

    def __len__(self) -> int:
        return self.end_position - self.start_position

    def to_http(self) -> str:
        """Return the value of HTTP's Range header. Raises ValueError for an empty range."""
        if not len(self):
            raise ValueError("cannot convert the range to HTTP: it is empty")
        return f"bytes={self.start_position}-{self.end_position - 1}"
