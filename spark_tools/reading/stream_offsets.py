"""Computes a stream's offsets, {topic: {partition: offset}} as in Spark's Kafka source. Pure.

A stream skips recorded gaps. It waits for other missing offsets until they are stored, because
segments may be recorded out of order. A partition that is not in the start offsets is new. The
stream reads it from its log start offset as soon as a part of it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rlmm.lookup import StoredLog
from rsm.segment.coverage import covered_end, stored_end
from rsm.segment.errors import UnsupportedError
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.admission import Backlog, TriggerLimits, admitted_ends
from spark_tools.reading.options import EARLIEST_OFFSET, OffsetBounds, ReadOptions
from spark_tools.reading.plan import SegmentPiece, cover, wanted_offsets
from spark_tools.stored_partition import StoredPartition

StreamOffsets = dict[str, dict[str, int]]

NO_LIMITS = TriggerLimits()


def initial_offsets(stored: Iterable[StoredPartition], options: ReadOptions) -> StreamOffsets:
    """Return the start offsets of a new stream.

    Raises NotFoundError for a requested offset outside the log.
    """
    found: StreamOffsets = {}
    for each in stored:
        tip, ranges = each.topic_id_partition, each.log.ranges
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
    """Return the end offset of each partition's contiguous data above `start`, within the limits.

    If a partition's log start offset is above `start`, unread records have expired. The end offset
    is then at or above the log start offset, so the read fails. `target` is the end of a
    terminating query: nothing above it is read, and no partition that it does not name.
    """
    found: StreamOffsets = {}
    backlogs: dict[tuple[str, str], Backlog] = {}
    for each in stored:
        tip, log = each.topic_id_partition, each.log
        waiting = _waiting(each, log, start, target)
        if waiting is not None:
            backlogs[tip.topic, str(tip.partition)] = _backlog(log, waiting, limits)
    for (topic, partition), end_offset in admitted_ends(backlogs, limits).items():
        found.setdefault(topic, {})[partition] = end_offset
    return found


def stored_offsets(stored: Iterable[StoredPartition]) -> StreamOffsets:
    """Return the end offset of each partition's stored log, even if lower offsets are missing."""
    found: StreamOffsets = {}
    for each in stored:
        end_offset = stored_end(each.log.ranges)
        if end_offset is not None:
            _put(found, each, end_offset)
    return found


def _waiting(
    stored: StoredPartition,
    log: StoredLog,
    start: StreamOffsets,
    target: StreamOffsets | None,
) -> OffsetRange | None:
    """Return the readable range of a partition at and above `start`.

    Returns None for a new partition if nothing of it is stored, or if `target` does not name it.
    """
    tip = stored.topic_id_partition
    started = start.get(tip.topic, {}).get(str(tip.partition))
    first = stored.state.first_readable_offset
    is_known = started is not None
    if started is None:
        if not log.ranges:
            return None
        started = min(each.offsets.start_offset for each in log.ranges) if first is None else first
    started = max(started, first or 0)
    end_offset = covered_end(log.ranges, started, gaps=log.gaps)
    if target is not None:
        last = target.get(tip.topic, {}).get(str(tip.partition))
        if last is None and not is_known:
            return None
        end_offset = started if last is None else max(started, min(end_offset, last))
    return OffsetRange(start_offset=started, end_offset=end_offset)


def _backlog(log: StoredLog, waiting: OffsetRange, limits: TriggerLimits) -> Backlog:
    if limits.max_bytes is None:
        return Backlog(offsets=waiting, parts=())
    pieces = cover(log, None, waiting)
    parts = [(each.offsets, each.size_bytes) for each in pieces if isinstance(each, SegmentPiece)]
    return Backlog(offsets=waiting, parts=tuple(parts))


def between(options: ReadOptions, start: StreamOffsets, end: StreamOffsets) -> ReadOptions:
    """Return the options of one micro-batch; it reads no partition that `end` does not name.

    Raises UnsupportedError if `end` is below `start`.
    """
    starts, ends = _named(start), _named(end)
    for (topic, partition), offset in ends.items():
        if offset < starts.get((topic, partition), offset):
            raise UnsupportedError(
                "cannot resume the stream: Spark before 4.2 does not pass the stream's position",
                partition=f"{topic}:{partition}",
                reached=starts[topic, partition],
                end=offset,
                advice="Use Spark 4.2 or newer",
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
