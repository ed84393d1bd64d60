"""A stream's offsets, {topic: {partition: offset}} as Spark's Kafka source writes them. Pure.

A stream never steps over a hole: it waits before it until what is missing there is stored, for a
segment may be told of after one that follows it. A partition that it does not know is new: it is
read from its beginning, once anything of it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rsm.segment.coverage import covered_end
from rsm.segment.errors import UnsupportedError
from spark_tools.reading.options import EARLIEST_OFFSET, OffsetBounds, ReadOptions
from spark_tools.reading.plan import readable_ranges, wanted_offsets
from spark_tools.stored_partition import StoredPartition

StreamOffsets = dict[str, dict[str, int]]


def initial_offsets(stored: Iterable[StoredPartition], options: ReadOptions) -> StreamOffsets:
    """Where a new stream begins. NotFoundError for an offset outside of what is stored."""
    found: StreamOffsets = {}
    for each in stored:
        tip, ranges = each.topic_id_partition, readable_ranges(each)
        wanted = wanted_offsets(each, ranges, options)
        if ranges or options.starting.of(tip.topic, tip.partition) >= 0:
            _put(found, each, wanted.start_offset)
    return found


def latest_offsets(stored: Iterable[StoredPartition], start: StreamOffsets) -> StreamOffsets:
    """Up to where each partition can be read without a hole from `start` on.

    Where a partition's log begins above `start`, what was to be read has expired: then from where
    it begins, so that the read is asked for, and fails.
    """
    found: StreamOffsets = {}
    for each in stored:
        tip, ranges = each.topic_id_partition, readable_ranges(each)
        begun = start.get(tip.topic, {}).get(str(tip.partition))
        first = each.state.first_readable_offset
        if begun is None:
            if not ranges:
                continue
            begun = (
                min(stored.offsets.start_offset for stored in ranges) if first is None else first
            )
        gaps = [gap.offsets for gap in each.state.gaps]
        begun = max(begun, first or 0)
        _put(found, each, covered_end(ranges, begun, gaps=gaps))
    return found


def between(options: ReadOptions, start: StreamOffsets, end: StreamOffsets) -> ReadOptions:
    """The options of one micro-batch: what `end` does not name is not read in it.

    UnsupportedError if it would go back.
    """
    starts, ends = _named(start), _named(end)
    for (topic, partition), offset in ends.items():
        if offset < starts.get((topic, partition), offset):
            raise UnsupportedError(
                "the stream can't be resumed: Spark before 4.2 does not tell from where",
                partition=f"{topic}:{partition}",
                reached=starts[topic, partition],
                end=offset,
            )
    return replace(
        options,
        starting=OffsetBounds(default=EARLIEST_OFFSET, named=starts),
        ending=OffsetBounds(default=EARLIEST_OFFSET, named=ends),
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
