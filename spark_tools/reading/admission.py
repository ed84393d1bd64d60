"""Limits how much of the backlog one micro-batch of a stream reads. Pure.

As in Spark's Kafka source, each partition gets a share of the limit in proportion to its backlog,
and at least one offset. This module assumes that the bytes of a stored segment are spread evenly
over its offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rsm.segment.ranges import OffsetRange

Partition = TypeVar("Partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimits:
    """Represents the limits of a micro-batch over all partitions; None means no limit."""

    max_offsets: int | None = None
    max_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether any limit is set."""
        return self.max_offsets is not None or self.max_bytes is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Represents a partition's unread offsets.

    `parts` are the stored ranges of these offsets, ascending, each with its bytes. They are empty
    if no byte limit is set.
    """

    offsets: OffsetRange
    parts: tuple[tuple[OffsetRange, int], ...]

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all parts."""
        return sum(size_bytes for _, size_bytes in self.parts)

    def end_of_offsets(self, count: int) -> int:
        """Return the end offset of the first `count` offsets."""
        return self.offsets.start_offset + count

    def end_of_bytes(self, count: int) -> int:
        """Return the end offset of the first `count` bytes."""
        for offsets, size_bytes in self.parts:
            if size_bytes > count:
                return offsets.start_offset + len(offsets) * count // size_bytes
            count -= size_bytes
        return self.offsets.end_offset


def admitted_ends(
    backlogs: Mapping[Partition, Backlog], limits: TriggerLimits
) -> dict[Partition, int]:
    """Return the end offset of each partition in one micro-batch."""
    ends = {partition: each.offsets.end_offset for partition, each in backlogs.items()}
    if limits.max_offsets is not None:
        waiting = {partition: len(each.offsets) for partition, each in backlogs.items()}
        _lower(ends, backlogs, _shares(waiting, limits.max_offsets), Backlog.end_of_offsets)
    if limits.max_bytes is not None:
        waiting = {partition: each.size_bytes for partition, each in backlogs.items()}
        _lower(ends, backlogs, _shares(waiting, limits.max_bytes), Backlog.end_of_bytes)
    return ends


def _shares(waiting: Mapping[Partition, int], limit: int) -> dict[Partition, int]:
    total = max(1, sum(waiting.values()))
    if total <= limit:
        return dict(waiting)
    return {partition: count * limit // total for partition, count in waiting.items()}


def _lower(
    ends: dict[Partition, int],
    backlogs: Mapping[Partition, Backlog],
    shares: Mapping[Partition, int],
    end_of: Callable[[Backlog, int], int],
) -> None:
    for partition, backlog in backlogs.items():
        start_offset, end_offset = backlog.offsets.start_offset, backlog.offsets.end_offset
        least = min(start_offset + 1, end_offset)
        ends[partition] = min(ends[partition], max(least, end_of(backlog, shares[partition])))
