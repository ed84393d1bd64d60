"""Where brokers' own logs begin, as far as this process has learnt: fetches are planned by it.

And where a gap lies below: offsets that the last stored segment covers without a batch.

A guess, never an answer: it tells beforehand which partitions of a fetch the broker will no longer
have, so that the response can be put together instead of being passed on. A wrong guess costs a
client one retry, or a response that was gathered for nothing.

Memory: three numbers for each of the last `limit_count` partitions, and as many offsets.
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
    """Shared by the sessions of one loop; not thread-safe."""

    def __init__(self, *, limit_count: int = 100_000) -> None:
        self._starts: OrderedDict[TopicIdPartition, int] = OrderedDict()
        self._doubted: OrderedDict[tuple[TopicIdPartition, int], None] = OrderedDict()
        self._gaps: OrderedDict[TopicIdPartition, OffsetRange] = OrderedDict()
        self._limit_count = limit_count

    def at_least(self, partition: TopicIdPartition) -> int:
        """The broker has nothing below this, as far as is known; 0 if nothing is."""
        return self._starts.get(partition, 0)

    def out_of_range(self, partition: TopicIdPartition, offset: int) -> None:
        """The broker did not have `offset`: too low or too high, which the next fetch finds out.

        Of other offsets that says nothing: above the log's end, they may well be the broker's.
        """
        _remember(self._doubted, (partition, offset), None, self._limit_count)

    def found(self, partition: TopicIdPartition, offset: int) -> None:
        """The broker has `offset` now."""
        self._doubted.pop((partition, offset), None)

    def is_doubted(self, partition: TopicIdPartition, offset: int) -> bool:
        """The broker was found not to have this very offset, and it is not known why."""
        return (partition, offset) in self._doubted

    def learned(self, partition: TopicIdPartition, start_offset: int) -> None:
        """The broker itself says where its log starts; of what lies above that says nothing."""
        _remember(self._starts, partition, start_offset, self._limit_count)

    def gap(self, partition: TopicIdPartition, offset: int, next_offset: int) -> None:
        """From `offset` on nothing is stored and nothing missing up to `next_offset`."""
        gap = OffsetRange(start_offset=offset, end_offset=next_offset)
        _remember(self._gaps, partition, gap, self._limit_count)

    def after_gap(self, partition: TopicIdPartition, offset: int) -> int:
        """The offset to ask the broker for: the one given, or the end of the gap it lies in."""
        gap = self._gaps.get(partition)
        return gap.end_offset if gap is not None and offset in gap else offset


def _remember(known: OrderedDict[_K, _T], key: _K, value: _T, count: int) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > count:
        known.popitem(last=False)
