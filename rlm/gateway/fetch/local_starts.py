"""Remembers where brokers' local logs start, to plan fetches.

It also remembers offsets that brokers lacked, and ranges without batches after the last stored
batch. From these, it predicts which offsets of a fetch the broker lacks, because the gateway must
buffer the response to such a fetch. A wrong prediction costs a client one retry, or makes the
gateway buffer a response needlessly.

Memory: at most `limit_count` starts, `limit_count` missing offsets and `limit_count` ranges.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


class LocalStarts:
    """Represents the predictions, which the sessions of one loop share. Not thread-safe."""

    def __init__(self, *, limit_count: int = 100_000) -> None:
        self._starts: OrderedDict[TopicIdPartition, int] = OrderedDict()
        self._doubted: OrderedDict[tuple[TopicIdPartition, int], None] = OrderedDict()
        self._gaps: OrderedDict[TopicIdPartition, OffsetRange] = OrderedDict()
        self._limit_count = limit_count

    def at_least(self, partition: TopicIdPartition) -> int:
        """Return the offset below which the broker probably has no records; 0 if unknown."""
        return self._starts.get(partition, 0)

    def record_missing(self, partition: TopicIdPartition, offset: int) -> None:
        """Record that the broker lacks `offset`; the next fetch finds out why.

        The offset may be below or above the broker's log, so this proves nothing about other
        offsets.
        """
        _remember(self._doubted, (partition, offset), None, self._limit_count)

    def record_found(self, partition: TopicIdPartition, offset: int) -> None:
        """Record that the broker has `offset` now."""
        self._doubted.pop((partition, offset), None)

    def is_doubted(self, partition: TopicIdPartition, offset: int) -> bool:
        """Return whether the broker lacked exactly this offset, and the reason is unknown."""
        return (partition, offset) in self._doubted

    def record_start(self, partition: TopicIdPartition, start_offset: int) -> None:
        """Record the local log start that the broker reported."""
        _remember(self._starts, partition, start_offset, self._limit_count)

    def record_gap(self, partition: TopicIdPartition, offset: int, next_offset: int) -> None:
        """Record that neither tier has a batch in [`offset`, `next_offset`)."""
        gap = OffsetRange(start_offset=offset, end_offset=next_offset)
        _remember(self._gaps, partition, gap, self._limit_count)

    def after_gap(self, partition: TopicIdPartition, offset: int) -> int:
        """Return the offset to request from the broker.

        That is `offset`, unless `record_gap` recorded a range that contains it; then it is the
        range's end.
        """
        gap = self._gaps.get(partition)
        return gap.end_offset if gap is not None and offset in gap else offset


def _remember(known: OrderedDict[_K, _T], key: _K, value: _T, count: int) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > count:
        known.popitem(last=False)
