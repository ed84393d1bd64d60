"""Finds overlaps, holes, unreadable segments and unfinished work of a partition. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState
from rsm.segment.coverage import StoredRange, stored_ranges
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from spark_tools.audit.findings import Finding, FindingKind, of_segment


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecords:
    """Represents a partition's state, and all its segments in any state."""

    topic_id_partition: TopicIdPartition
    state: PartitionState
    segments: tuple[SegmentRecord, ...]


def examine(partition: PartitionRecords, *, cut_off_ms: int) -> Iterator[Finding]:
    """Yield the findings of a partition.

    Unfinished work, and segments below the log start offset, count if they last changed before
    `cut_off_ms`. An unfinished copy must also have a deadline before that time.
    """
    finished = [
        record.metadata
        for record in partition.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    ]
    ranges = stored_ranges(partition.state.lineage, finished)
    yield from _overlaps(ranges)
    yield from _holes(partition, ranges, cut_off_ms)
    readable = {stored.metadata.segment_id for stored in ranges}
    log_start = partition.state.log_start_offset or 0
    for record in partition.segments:
        metadata, is_old = record.metadata, record.changed_ms < cut_off_ms
        match metadata.state:
            case SegmentState.COPY_SEGMENT_FINISHED if metadata.segment_id not in readable:
                detail = "none of its offsets is in the log's lineage"
                yield of_segment(FindingKind.OUT_OF_LINEAGE, metadata, detail)
            case SegmentState.COPY_SEGMENT_FINISHED if metadata.offsets.end_offset <= log_start:
                if is_old:
                    detail = f"the segment ends at or below the log start offset {log_start}"
                    yield of_segment(FindingKind.BELOW_LOG_START, metadata, detail)
            case SegmentState.COPY_SEGMENT_STARTED if _dangles(record, cut_off_ms):
                detail = "the copy did not finish before its deadline, and was not deleted"
                yield of_segment(FindingKind.DANGLING_COPY, metadata, detail)
            case SegmentState.DELETE_SEGMENT_STARTED if is_old:
                where = (
                    "it has a dead letter" if record.is_dead_lettered else "it has no dead letter"
                )
                detail = f"the deletion has not finished; {where}"
                yield of_segment(FindingKind.DANGLING_DELETE, metadata, detail)


def _overlaps(ranges: Sequence[StoredRange]) -> Iterator[Finding]:
    """Yield segments that overlap an earlier one. Among equal starts, the widest is earliest."""
    furthest: StoredRange | None = None
    for stored in sorted(ranges, key=_widest_first):
        if furthest is not None and stored.offsets.overlaps(furthest.offsets):
            detail = f"the segment overlaps {furthest.metadata.segment_id} {furthest.offsets}"
            yield of_segment(
                FindingKind.OVERLAP,
                stored.metadata,
                detail,
                length_bytes=stored.metadata.segment_size_bytes,
            )
        if furthest is None or stored.offsets.end_offset > furthest.offsets.end_offset:
            furthest = stored


def _widest_first(stored: StoredRange) -> tuple[int, int]:
    return stored.offsets.start_offset, -stored.offsets.end_offset


def _holes(
    partition: PartitionRecords, ranges: Sequence[StoredRange], cut_off_ms: int
) -> Iterator[Finding]:
    """Yield a finding for each hole between known ranges or below the trimmed offset.

    Other offsets that are not stored are still in the broker's log. Skips a partition under
    deletion. Below a segment that is being copied or was copied recently, untrimmed offsets may be
    missing, because copies run concurrently and finish in any order.
    """
    state = partition.state
    if state.deletion is not None:
        return
    trimmed, begin = state.trimmed_offset or 0, state.first_readable_offset
    known = sorted(
        (offsets, is_fresh)
        for offsets, is_fresh in _known(partition, ranges, cut_off_ms)
        if offsets.end_offset > (begin or 0)
    )
    if begin is None:  # The log starts at the first known offset.
        begin = known[0][0].start_offset if known else trimmed
    reached = begin
    for number, (offsets, is_fresh) in enumerate(known):
        end_offset = offsets.start_offset if number else min(offsets.start_offset, trimmed)
        if end_offset > reached and (end_offset <= trimmed or not is_fresh):
            yield _hole(partition.topic_id_partition, reached, end_offset)
        reached = max(reached, offsets.end_offset)
    if trimmed > reached:
        yield _hole(partition.topic_id_partition, reached, trimmed)


def _known(
    partition: PartitionRecords, ranges: Sequence[StoredRange], cut_off_ms: int
) -> Iterator[tuple[OffsetRange, bool]]:
    """Yield stored ranges, ranges that are being copied, and gaps, each with its freshness.

    A stored range is fresh if its segment changed at or after the cut-off. An unfinished copy is
    always fresh, a gap never. A copy whose end is not known extends to the next stored range; if
    there is none, it counts as one offset.
    """
    stored = {each.metadata.segment_id: each.offsets for each in ranges}
    for record in partition.segments:
        metadata = record.metadata
        if metadata.segment_id in stored:
            yield stored[metadata.segment_id], record.changed_ms >= cut_off_ms
        elif metadata.state is SegmentState.COPY_SEGMENT_STARTED and not _dangles(
            record, cut_off_ms
        ):
            yield _copied_offsets(metadata, ranges), True
    for gap in partition.state.gaps:
        yield gap.offsets, False


def _copied_offsets(
    metadata: RemoteLogSegmentMetadata, ranges: Sequence[StoredRange]
) -> OffsetRange:
    begin = metadata.offsets.start_offset
    if not metadata.is_open:
        return metadata.offsets
    above = (each.offsets.start_offset for each in ranges if each.offsets.start_offset > begin)
    return OffsetRange(start_offset=begin, end_offset=min(above, default=begin + 1))


def _dangles(started: SegmentRecord, cut_off_ms: int) -> bool:
    return max(started.changed_ms, started.copy_deadline_ms) < cut_off_ms


def _hole(tip: TopicIdPartition, start_offset: int, end_offset: int) -> Finding:
    return Finding(
        kind=FindingKind.GAP.value,
        topic=tip.topic,
        partition=tip.partition,
        start_offset=start_offset,
        end_offset=end_offset,
        detail="no segment contains these offsets, and no gap is recorded",
    )
