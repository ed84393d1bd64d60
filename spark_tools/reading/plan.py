"""Plans where tasks read each offset: from a segment, or from the broker. Pure.

rlmm.lookup selects the segment of each offset, and decides which missing offsets are a recorded
gap. Other missing offsets become a `Hole`, and are never skipped silently. A large segment becomes
several pieces with about the same number of offsets. A piece's reader finds the first batch with
the segment's index. One task reads consecutive small segments. If the options request it, tasks
read from the broker the offsets that are not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rlmm.lookup import Absence, NotStored, StoredLog
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.options import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    STORED_OFFSET,
    Mode,
    ReadOptions,
)
from spark_tools.stored_partition import StoredPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPiece:
    """Represents offsets to read from one segment; `stored` is its readable part."""

    stored: StoredRange
    offsets: OffsetRange

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return self.stored.metadata.topic_id_partition

    @property
    def size_bytes(self) -> int:
        """Return the piece's approximate bytes, as if all offsets of the segment had equal size."""
        metadata = self.stored.metadata
        return metadata.segment_size_bytes * len(self.offsets) // len(metadata.offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPiece:
    """Represents offsets to read from the partition's broker."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Represents requested offsets that cannot be read and are not in a recorded gap."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange

    def error(self) -> NotFoundError:
        """Return the error for a reader that must not skip these offsets."""
        return NotFoundError(
            "cannot read the range: its offsets are not stored",
            partition=self.topic_id_partition,
            offsets=self.offsets,
        )


Piece = SegmentPiece | BrokerPiece | Hole
Task = tuple[Piece, ...]
"""Consecutive pieces of one partition that become one partition of Spark."""


def plan(
    partition: StoredPartition, options: ReadOptions, local: OffsetRange | None = None
) -> list[Piece]:
    """Return the pieces to read of a partition, in order of offset.

    `local` is the broker's log; None if nothing is to be read from the broker. The caller must look
    up `local` before it reads the metadata. Then the metadata contains all segments that were
    trimmed from the log.

    Raises NotFoundError for missing offsets in failfast mode, and for a bound outside the log.
    """
    log = partition.log
    local = readable_local(partition, local)
    wanted = wanted_offsets(partition, log.ranges, options, local)
    pieces: list[Piece] = []
    for piece in cover(log, local, wanted):
        if isinstance(piece, SegmentPiece):
            if _may_match(piece, options):
                pieces.append(piece)
        elif isinstance(piece, BrokerPiece) or options.mode is not Mode.FAILFAST:
            pieces.append(piece)
        else:
            raise piece.error()
    return pieces


def split(pieces: Sequence[Piece], split_bytes: int) -> Iterator[Piece]:
    """Divide segments' pieces into parts of at most about `split_bytes`, with equal counts."""
    for piece in pieces:
        if isinstance(piece, SegmentPiece):
            yield from _parts(piece, split_bytes)
        else:
            yield piece


def joined(pieces: Iterable[Piece], task_bytes: int) -> list[Task]:
    """Join consecutive pieces of segments into tasks of at most `task_bytes`.

    A larger piece becomes a task by itself. So does a piece that reads no segment.
    """
    tasks: list[list[Piece]] = []
    room_bytes = 0
    for piece in pieces:
        # A piece that reads no segment counts as too large, so it becomes a task by itself.
        size_bytes = piece.size_bytes if isinstance(piece, SegmentPiece) else task_bytes + 1
        follows = bool(tasks) and piece.topic_id_partition == tasks[-1][0].topic_id_partition
        if follows and size_bytes <= room_bytes:
            tasks[-1].append(piece)
            room_bytes -= size_bytes
        else:
            tasks.append([piece])
            room_bytes = task_bytes - size_bytes
    return [tuple(task) for task in tasks]


def readable_local(partition: StoredPartition, local: OffsetRange | None) -> OffsetRange | None:
    """Return the broker's log; None if no part of it is at or above the log start offset."""
    if local is None:
        return None
    log_start_offset = partition.state.first_readable_offset or 0
    return local if max(local.start_offset, log_start_offset) < local.end_offset else None


def wanted_offsets(
    partition: StoredPartition,
    ranges: Sequence[StoredRange],
    options: ReadOptions,
    local: OffsetRange | None = None,
) -> OffsetRange:
    """Return the requested offsets. Raises NotFoundError for a bound outside the log.

    `earliest` means the log start offset, even if the first offsets are not stored.
    """
    tip = partition.topic_id_partition
    every = [*(each.offsets for each in ranges), *([] if local is None else [local])]
    first = partition.state.first_readable_offset
    if first is None:
        first = min((each.start_offset for each in every), default=0)
    stored_end = max((each.offsets.end_offset for each in ranges), default=first)
    end = max((each.end_offset for each in every), default=first)
    start_offset = options.starting.of(tip.topic, tip.partition)
    end_offset = options.ending.of(tip.topic, tip.partition)
    bounds = {EARLIEST_OFFSET: first, LATEST_OFFSET: end, STORED_OFFSET: stored_end}
    start_offset, end_offset = (
        bounds.get(start_offset, start_offset),
        bounds.get(end_offset, end_offset),
    )
    for offset in (start_offset, end_offset):
        if not first <= offset <= end:
            raise NotFoundError(
                "the requested offset is invalid: it is outside of the readable range",
                partition=tip,
                offset=offset,
                readable=OffsetRange(start_offset=first, end_offset=end),
                advice="Correct startingOffsets or endingOffsets",
            )
    return OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))


def cover(log: StoredLog, local: OffsetRange | None, wanted: OffsetRange) -> Iterator[Piece]:
    """Yield pieces that together contain each wanted offset once, except those in recorded gaps."""
    tip = log.topic_id_partition
    offset = wanted.start_offset
    while offset < wanted.end_offset:
        found = log.at(offset)
        end_offset = min((wanted.end_offset, *_edges(found, log, local)))
        offsets = OffsetRange(start_offset=offset, end_offset=end_offset)
        if isinstance(found, StoredRange):
            yield SegmentPiece(stored=found, offsets=offsets)
        elif local is not None and offset in local:
            yield BrokerPiece(topic_id_partition=tip, offsets=offsets)
        elif found.absence is not Absence.RECORDED_GAP:
            yield Hole(topic_id_partition=tip, offsets=offsets)
        offset = end_offset


def _edges(found: StoredRange | NotStored, log: StoredLog, local: OffsetRange | None) -> list[int]:
    """Return the possible end offsets of a piece; `found` is the lookup of its first offset."""
    if isinstance(found, StoredRange):
        return [found.offsets.end_offset]
    if local is not None and found.offset in local:
        edges = [local.end_offset, log.stored_above(found.offset)]
    else:
        edges = [found.until_offset, log.gap_above(found.offset)]
        if local is not None and local.start_offset > found.offset:
            edges.append(local.start_offset)
    return [edge for edge in edges if edge is not None]


def _may_match(piece: SegmentPiece, options: ReadOptions) -> bool:
    """Return False if the segment's newest record is too old. A timestamp of -1 is unknown."""
    newest_ms = piece.stored.metadata.max_timestamp_ms
    return options.from_ms is None or newest_ms < 0 or newest_ms >= options.from_ms


def _parts(piece: SegmentPiece, split_bytes: int) -> Iterator[SegmentPiece]:
    """Yield parts of at most about `split_bytes`, as if all offsets had equal size."""
    offsets = piece.offsets
    count = max(1, min(-(-piece.size_bytes // split_bytes), len(offsets)))
    edges = [offsets.start_offset + len(offsets) * number // count for number in range(count + 1)]
    for start_offset, end_offset in pairwise(edges):
        part = OffsetRange(start_offset=start_offset, end_offset=end_offset)
        yield SegmentPiece(stored=piece.stored, offsets=part)
