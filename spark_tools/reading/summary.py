"""Counts what a plan reads and omits, for each partition. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from rsm.segment.coverage import StoredRange
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import (
    BrokerPiece,
    Hole,
    SegmentPiece,
    Task,
    readable_local,
    wanted_offsets,
)
from spark_tools.stored_partition import StoredPartition

_KIB = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """Represents what a plan reads of one partition.

    `pruned_by_offset` counts segments outside the bounds of offsets. `pruned_by_time` counts those
    within the bounds whose newest record is older than `fromTimestamp`. `size_bytes` is the
    approximate stored size of the read parts. `broker_offsets` counts offsets read from the
    broker, and `missing_offsets` those that cannot be read.
    """

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange
    segments: int
    size_bytes: int
    tasks: int
    pruned_by_offset: int
    pruned_by_time: int
    broker_offsets: int
    missing_offsets: int


def summarized(
    stored: Iterable[StoredPartition],
    tasks: Sequence[Task],
    options: ReadOptions,
    local: Mapping[TopicIdPartition, OffsetRange],
) -> tuple[PartitionSummary, ...]:
    """Summarize the tasks of each partition, in order; `local` is as passed to `plan`."""
    by_partition: dict[TopicIdPartition, list[Task]] = {}
    for task in tasks:
        by_partition.setdefault(task[0].topic_id_partition, []).append(task)
    return tuple(
        _summary(
            each,
            by_partition.get(each.topic_id_partition, []),
            options,
            readable_local(each, local.get(each.topic_id_partition)),
        )
        for each in stored
    )


def in_one_line(summaries: Collection[PartitionSummary]) -> str:
    """Format the totals of all partitions for the log."""
    topics = ",".join(dict.fromkeys(each.topic_id_partition.topic for each in summaries))
    total = {name: sum(getattr(each, name) for each in summaries) for name in _COUNTED}
    parts = [
        f"partitions: {len(summaries)}",
        f"segments: {total['segments']}",
        f"size: {readable_size(total['size_bytes'])}",
        f"tasks: {total['tasks']}",
        f"segments pruned by offset: {total['pruned_by_offset']}",
        f"segments pruned by timestamp: {total['pruned_by_time']}",
    ]
    if total["broker_offsets"]:
        parts.append(f"offsets read from the brokers: {total['broker_offsets']}")
    if total["missing_offsets"]:
        parts.append(f"unreadable offsets: {total['missing_offsets']}")
    return f"planned {topics} ({', '.join(parts)})"


def readable_size(size_bytes: int) -> str:
    """Format the size with a unit and at most one decimal."""
    size = float(size_bytes)
    for unit in _UNITS[:-1]:
        if size < _KIB:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} {_UNITS[-1]}"


_COUNTED = (
    "segments",
    "size_bytes",
    "tasks",
    "pruned_by_offset",
    "pruned_by_time",
    "broker_offsets",
    "missing_offsets",
)


def _summary(
    stored: StoredPartition,
    tasks: Sequence[Task],
    options: ReadOptions,
    local: OffsetRange | None,
) -> PartitionSummary:
    pieces = [piece for task in tasks for piece in task]
    ranges = stored.log.ranges
    wanted = wanted_offsets(stored, ranges, options, local)
    of_broker = [piece.offsets for piece in pieces if isinstance(piece, BrokerPiece)]
    parts = [piece for piece in pieces if isinstance(piece, SegmentPiece)]
    read = {_id_of(piece.stored) for piece in parts}
    outside = {
        _id_of(each): not _overlap(each.offsets, wanted)
        for each in ranges
        if _id_of(each) not in read
    }
    return PartitionSummary(
        topic_id_partition=stored.topic_id_partition,
        offsets=wanted,
        segments=len(read),
        size_bytes=sum(piece.size_bytes for piece in parts),
        tasks=len(tasks),
        pruned_by_offset=sum(outside.values()),
        pruned_by_time=_too_old(ranges, outside, options),
        broker_offsets=sum(map(len, of_broker)),
        missing_offsets=sum(len(piece.offsets) for piece in pieces if isinstance(piece, Hole)),
    )


def _too_old(
    ranges: Sequence[StoredRange], outside: Mapping[UUID, bool], options: ReadOptions
) -> int:
    """Return the number of segments that `fromTimestamp` alone excludes."""
    return sum(
        options.from_ms is not None
        and 0 <= each.metadata.max_timestamp_ms < options.from_ms
        and outside.get(_id_of(each)) is False
        for each in ranges
    )


def _id_of(stored: StoredRange) -> UUID:
    return stored.metadata.segment_id.id


def _overlap(one: OffsetRange, other: OffsetRange) -> bool:
    start = max(one.start_offset, other.start_offset)
    return start < min(one.end_offset, other.end_offset)
