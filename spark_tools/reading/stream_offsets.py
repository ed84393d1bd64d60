"""A stream's offsets, {topic: {partition: offset}} as Spark's Kafka source writes them. Pure.

A stream never steps over a hole: it waits before it until what is missing there is stored, for a
segment may be told of after one that follows it. A partition that it does not know is new: it is
read from its beginning, once anything of it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rsm.segment.coverage import StoredRange, covered_end, stored_end
from rsm.segment.errors import UnsupportedError
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.admission import Backlog, TriggerLimits, admitted_ends
from spark_tools.reading.options import EARLIEST_OFFSET, OffsetBounds, ReadOptions
from spark_tools.reading.plan import SegmentPiece, cover, readable_ranges, wanted_offsets
from spark_tools.stored_partition import StoredPartition

StreamOffsets = dict[str, dict[str, int]]

NO_LIMITS = TriggerLimits()


def initial_offsets(stored: Iterable[StoredPartition], options: ReadOptions) -> StreamOffsets:
    """Where a new stream begins. NotFoundError for an offset outside of what is stored."""
    found: StreamOffsets = {}
    for each in stored:
        tip, ranges = each.topic_id_partition, readable_ranges(each)
        wanted = wanted_offsets(each, ranges, options)
        if ranges or options.starting.of(tip.topic, tip.partition) >= 0:
            _put(found, each, wanted.start_offset)
    return found


def latest_offsets(
    stored: Iterable[StoredPartition],
    start: StreamOffsets,
    limits: TriggerLimits = NO_LIMITS,
    target: StreamOffsets | None = None,
) -> StreamOffsets:
    """Up to where each partition can be read without a hole from `start` on, within the limits.

    Where a partition's log begins above `start`, what was to be read has expired: then from where
    it begins, so that the read is asked for, and fails. `target` is what a query that ends reads
    to; nothing above it, and nothing of other partitions, is read.
    """
    found: StreamOffsets = {}
    backlogs: dict[tuple[str, str], Backlog] = {}
    for each in stored:
        tip, ranges = each.topic_id_partition, readable_ranges(each)
        waiting = _waiting(each, ranges, start, target)
        if waiting is not None:
            backlogs[tip.topic, str(tip.partition)] = _backlog(each, ranges, waiting, limits)
    for (topic, partition), end_offset in admitted_ends(backlogs, limits).items():
        found.setdefault(topic, {})[partition] = end_offset
    return found


def stored_offsets(stored: Iterable[StoredPartition]) -> StreamOffsets:
    """Up to where each partition is stored, over holes too."""
    found: StreamOffsets = {}
    for each in stored:
        end_offset = stored_end(readable_ranges(each))
        if end_offset is not None:
            _put(found, each, end_offset)
    return found


def _waiting(
    stored: StoredPartition,
    ranges: Sequence[StoredRange],
    start: StreamOffsets,
    target: StreamOffsets | None,
) -> OffsetRange | None:
    """What can be read of a partition from `start` on; None: it has nothing yet."""
    tip = stored.topic_id_partition
    started = start.get(tip.topic, {}).get(str(tip.partition))
    first = stored.state.first_readable_offset
    is_known = started is not None
    if started is None:
        if not ranges:
            return None
        started = min(each.offsets.start_offset for each in ranges) if first is None else first
    started = max(started, first or 0)
    gaps = [gap.offsets for gap in stored.state.gaps]
    end_offset = covered_end(ranges, started, gaps=gaps)
    if target is not None:
        last = target.get(tip.topic, {}).get(str(tip.partition))
        if last is None and not is_known:
            return None
        end_offset = started if last is None else max(started, min(end_offset, last))
    return OffsetRange(start_offset=started, end_offset=end_offset)


def _backlog(
    stored: StoredPartition,
    ranges: Sequence[StoredRange],
    waiting: OffsetRange,
    limits: TriggerLimits,
) -> Backlog:
    if limits.max_bytes is None:
        return Backlog(offsets=waiting, parts=())
    pieces = cover(stored, ranges, None, waiting)
    parts = [(each.offsets, each.size_bytes) for each in pieces if isinstance(each, SegmentPiece)]
    return Backlog(offsets=waiting, parts=tuple(parts))


def between(options: ReadOptions, start: StreamOffsets, end: StreamOffsets) -> ReadOptions:
    """The options of one micro-batch: what `end` does not name is not read in it.

    UnsupportedError if it would go back.
    """
    starts, ends = _named(start), _named(end)
    for (topic, partition), offset in ends.items():
        if offset < starts.get((topic, partition), offset):
            raise UnsupportedError(
                "the stream cannot be resumed: Spark before 4.2 does not tell from where",
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
