"""Which segments are read for which offsets: the pieces that Spark makes partitions of. Pure.

Segments may overlap; each offset is read from one, as the gateway would: of those that hold it in
the log's lineage, from the one that reaches furthest. A hole between segments is never stepped
over in silence, unless it is on record. A large segment is several pieces of about equal numbers
of offsets, each of which finds its first batch by the segment's index; small segments that follow
each other are read by one task. What is not stored is read from the broker, if that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rsm.segment.coverage import StoredRange, stored_ranges
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
    """Offsets to be read from one segment; `stored` is what of it may be read at all."""

    stored: StoredRange
    offsets: OffsetRange

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return self.stored.metadata.topic_id_partition

    @property
    def size_bytes(self) -> int:
        """About how much of the segment that is: as if its bytes were spread over its offsets."""
        metadata = self.stored.metadata
        return metadata.segment_size_bytes * len(self.offsets) // len(metadata.offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPiece:
    """Offsets to be read from the broker that has them."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Offsets between stored ones that nothing answers for."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange

    def error(self) -> NotFoundError:
        """This as an error, for whoever may not step over it."""
        return NotFoundError(
            "nothing is stored of some offsets",
            partition=self.topic_id_partition,
            offsets=self.offsets,
        )


Piece = SegmentPiece | BrokerPiece | Hole
Task = tuple[Piece, ...]
"""Pieces of one partition that follow each other, which Spark makes one of its partitions of."""


def plan(
    partition: StoredPartition, options: ReadOptions, local: OffsetRange | None = None
) -> list[Piece]:
    """What to read of a partition, in order of offset, a piece for each segment.

    `local`: what the broker had before the metadata was read, so that none of it can have been
    trimmed without being known to be stored; None: nothing is read from there.

    Raises NotFoundError for a hole if the mode is failfast, and for a bound given as an
    offset that lies outside of what is stored.
    """
    ranges = readable_ranges(partition)
    local = readable_local(partition, local)
    wanted = wanted_offsets(partition, ranges, options, local)
    pieces: list[Piece] = []
    for piece in cover(partition, ranges, local, wanted):
        if isinstance(piece, SegmentPiece):
            if _may_match(piece, options):
                pieces.append(piece)
        elif isinstance(piece, BrokerPiece) or options.mode is not Mode.FAILFAST:
            pieces.append(piece)
        else:
            raise piece.error()
    return pieces


def split(pieces: Sequence[Piece], split_bytes: int) -> Iterator[Piece]:
    """Divide each piece of a segment into parts of about `split_bytes`, of as many offsets each."""
    for piece in pieces:
        if isinstance(piece, SegmentPiece):
            yield from _parts(piece, split_bytes)
        else:
            yield piece


def joined(pieces: Iterable[Piece], task_bytes: int) -> list[Task]:
    """As tasks of at most that size. A larger piece is one alone; so is what is of no segment."""
    tasks: list[list[Piece]] = []
    room_bytes = 0
    for piece in pieces:
        # What is of no segment has no room for others, and fits in none.
        size_bytes = piece.size_bytes if isinstance(piece, SegmentPiece) else task_bytes + 1
        follows = bool(tasks) and piece.topic_id_partition == tasks[-1][0].topic_id_partition
        if follows and size_bytes <= room_bytes:
            tasks[-1].append(piece)
            room_bytes -= size_bytes
        else:
            tasks.append([piece])
            room_bytes = task_bytes - size_bytes
    return [tuple(task) for task in tasks]


def readable_ranges(partition: StoredPartition) -> list[StoredRange]:
    """What is stored in the log's lineage and not below its start, ascending by start."""
    state = partition.state
    start_offset = state.first_readable_offset or 0
    return [
        replace(stored, offsets=replace(stored.offsets, start_offset=first))
        for stored in stored_ranges(state.lineage, partition.segments)
        if (first := max(stored.offsets.start_offset, start_offset)) < stored.offsets.end_offset
    ]


def readable_local(partition: StoredPartition, local: OffsetRange | None) -> OffsetRange | None:
    """The broker's log; None if nothing of it is at or above the log's start."""
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
    """The offsets asked for, within those that there are. NotFoundError for one below or above.

    They begin with the log, also where nothing is stored of its beginning.
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
                "an offset is not within what is stored",
                partition=tip,
                offset=offset,
                stored=OffsetRange(start_offset=first, end_offset=end),
            )
    return OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))


def cover(
    partition: StoredPartition,
    ranges: Sequence[StoredRange],
    local: OffsetRange | None,
    wanted: OffsetRange,
) -> Iterator[Piece]:
    """The wanted offsets, each once, but for those of a recorded gap: what lay there is lost."""
    gaps = [gap.offsets for gap in partition.state.gaps]
    starts = [each.offsets.start_offset for each in ranges]
    local_starts = [] if local is None else [local.start_offset]
    offset = wanted.start_offset
    while offset < wanted.end_offset:
        holding = [each for each in ranges if offset in each.offsets]
        if holding:
            stored = max(holding, key=lambda each: each.offsets.end_offset)
            end_offset = min(stored.offsets.end_offset, wanted.end_offset)
            offsets = OffsetRange(start_offset=offset, end_offset=end_offset)
            yield SegmentPiece(stored=stored, offsets=offsets)
        elif local is not None and offset in local:
            above = [start for start in starts if start > offset]
            end_offset = min((*above, local.end_offset, wanted.end_offset))
            yield BrokerPiece(
                topic_id_partition=partition.topic_id_partition,
                offsets=OffsetRange(start_offset=offset, end_offset=end_offset),
            )
        else:
            above = [start for start in (*starts, *local_starts) if start > offset]
            end_offset = min((*above, wanted.end_offset))
            gap = next((each for each in gaps if offset in each), None)
            if gap is None:
                edges = (each.start_offset for each in gaps if each.start_offset > offset)
                end_offset = min((end_offset, *edges))
                offsets = OffsetRange(start_offset=offset, end_offset=end_offset)
                yield Hole(topic_id_partition=partition.topic_id_partition, offsets=offsets)
            else:
                end_offset = min(end_offset, gap.end_offset)
        offset = end_offset


def _may_match(piece: SegmentPiece, options: ReadOptions) -> bool:
    """False where the segment's newest record is too old; -1 is no timestamp, thus no answer."""
    newest_ms = piece.stored.metadata.max_timestamp_ms
    return options.from_ms is None or newest_ms < 0 or newest_ms >= options.from_ms


def _parts(piece: SegmentPiece, split_bytes: int) -> Iterator[SegmentPiece]:
    """Parts of about `split_bytes`, if offsets are spread evenly over the segment's bytes."""
    offsets = piece.offsets
    count = max(1, min(-(-piece.size_bytes // split_bytes), len(offsets)))
    edges = [offsets.start_offset + len(offsets) * number // count for number in range(count + 1)]
    for start_offset, end_offset in pairwise(edges):
        part = OffsetRange(start_offset=start_offset, end_offset=end_offset)
        yield SegmentPiece(stored=piece.stored, offsets=part)
