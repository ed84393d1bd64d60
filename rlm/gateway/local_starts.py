"""Where brokers' own logs begin, as far as this process has learnt: fetches are planned by it.

And where a gap lies below: offsets that the last stored segment covers without a batch.

A guess, never an answer: it tells beforehand which partitions of a fetch the broker will no longer
have, so that the response can be put together instead of being passed on. A wrong guess costs a
client one retry, or a response that was gathered for nothing.

Memory: three numbers for each of the last `limit_count` partitions.
"""

from __future__ import annotations

from collections import OrderedDict

from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange


class LocalStarts:
    """Shared by the sessions of one loop; not thread-safe."""

    def __init__(self, *, limit_count: int = 100_000) -> None:
        self._starts: OrderedDict[TopicIdPartition, int] = OrderedDict()
        self._gaps: OrderedDict[TopicIdPartition, OffsetRange] = OrderedDict()
        self._limit_count = limit_count

    def at_least(self, partition: TopicIdPartition) -> int:
        """The broker has nothing below this, as far as is known; 0 if nothing is."""
        return self._starts.get(partition, 0)

    def out_of_range(self, partition: TopicIdPartition, offset: int) -> None:
        """The broker did not have `offset`: too low or too high, which the next fetch finds out."""
        if offset >= self.at_least(partition):
            self._set(partition, offset + 1)

    def learned(self, partition: TopicIdPartition, start_offset: int) -> None:
        """The broker itself says where its log starts."""
        self._set(partition, start_offset)

    def gap(self, partition: TopicIdPartition, offset: int, next_offset: int) -> None:
        """From `offset` on nothing is stored and nothing missing up to `next_offset`."""
        self._gaps[partition] = OffsetRange(start_offset=offset, end_offset=next_offset)
        self._gaps.move_to_end(partition)
        if len(self._gaps) > self._limit_count:
            self._gaps.popitem(last=False)

    def behind_gap(self, partition: TopicIdPartition, offset: int) -> int:
        """The offset to ask the broker for: the one given, or the end of the gap it lies in."""
        gap = self._gaps.get(partition)
        return gap.end_offset if gap is not None and offset in gap else offset

    def _set(self, partition: TopicIdPartition, start_offset: int) -> None:
        self._starts[partition] = start_offset
        self._starts.move_to_end(partition)
        if len(self._starts) > self._limit_count:
            self._starts.popitem(last=False)
