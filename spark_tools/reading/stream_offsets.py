"""A stream's offsets, {topic: {partition: offset}} as Spark's Kafka source writes them. Pure.

A stream never steps over a hole: it waits before it until what is missing there is stored, for a
segment may be told of after one that follows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rsm.segment.coverage import covered_end
from spark_tools.reading.options import STORED_OFFSET, OffsetBounds, ReadOptions
from spark_tools.reading.plan import readable_ranges, wanted_offsets
from spark_tools.stored_partition import StoredPartition

StreamOffsets = dict[str, dict[str, int]]


def initial_offsets(stored: Iterable[StoredPartition], options: ReadOptions) -> StreamOffsets:
    """Where a new stream begins. NotFoundError for an offset outside of what is stored."""
    found: StreamOffsets = {}
    for each in stored:
        wanted = wanted_offsets(each, readable_ranges(each), options)
        _put(found, each, wanted.start_offset)
    return found


def latest_offsets(stored: Iterable[StoredPartition], start: StreamOffsets) -> StreamOffsets:
    """Up to where each partition can be read without a hole from `start` on.

    A partition that `start` does not know is new, and read from its beginning.
    """
    found: StreamOffsets = {}
    for each in stored:
        tip, ranges = each.topic_id_partition, readable_ranges(each)
        first = min((r.offsets.start_offset for r in ranges), default=0)
        begun = start.get(tip.topic, {}).get(str(tip.partition), first)
        gaps = [gap.offsets for gap in each.state.gaps]
        _put(found, each, covered_end(ranges, begun, gaps=gaps))
    return found


def between(options: ReadOptions, start: StreamOffsets, end: StreamOffsets) -> ReadOptions:
    """The options of one micro-batch."""
    return replace(
        options,
        starting=replace(options.starting, named=_named(start)),
        ending=OffsetBounds(default=STORED_OFFSET, named=_named(end)),
    )


def _put(offsets: StreamOffsets, partition: StoredPartition, offset: int) -> None:
    tip = partition.topic_id_partition
    offsets.setdefault(tip.topic, {})[str(tip.partition)] = offset


def _named(offsets: StreamOffsets) -> dict[tuple[str, int], int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
