"""Decides which small segments of a streamed partition to merge, and then to delete. Pure.

    adjacent small segments → copied as one segment → it is finished → the small ones are deleted

A segment is small if its size is below 1/SMALL_SHARE of the greatest size of a merged segment.
`max.size.per.offload.segment.bytes` and a retention in bytes limit that size. Larger segments stay
as they are: there are few of them, and merging them would copy many bytes for little effect.

A merge takes at most MERGE_MAX_PARTS segments, and the merged segment has at least MERGE_GROWTH
times the size of its largest part. So each merge moves a byte into a segment that is at least
MERGE_GROWTH times as large. A byte that was streamed in a segment of `s` bytes is copied again at
most log(`small` / `s`) / log(MERGE_GROWTH) times, rounded up. The largest possible merge is
preferred, so most bytes are copied less often.

All finished segments of a streamed partition count, however they were written: a merged segment can
be merged again. No record marks a merge: a finished segment replaces the segments that it covers.
So a new leader continues the deletions of the previous leader.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlm.policy.candidates import copying_forbidden
from rlm.policy.repair import ReplacedSegment
from rlm.policy.stream.ending import GREATEST_OFFSET_COUNT
from rlm.policy.view import PartitionView
from rlmm.events.pause import PausableTask
from rlmm.events.policy import PolicyState
from rlmm.spi import SegmentRecord
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange

MERGE_GROWTH = 4
"""The least ratio of a merged segment's size to the size of its largest part."""

SMALL_SHARE = 16
"""Only segments below 1/SMALL_SHARE of the greatest merged segment are merged."""

MERGE_MAX_PARTS = 128
"""The most segments of one merge: each costs requests, and its indexes are in memory."""

MERGES_LEFT_MAX = 4
"""The most merges whose parts are not deleted yet: their records are in the store twice."""

RETENTION_SHARES = 8
"""A merged segment spans at most 1/RETENTION_SHARES of a retention: it expires as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMerge:
    """Represents adjacent segments to copy as one, ascending. Each is whole and in the lineage."""

    parts: tuple[StoredRange, ...]

    @property
    def offsets(self) -> OffsetRange:
        """Return the offsets of all parts."""
        return OffsetRange(
            start_offset=self.parts[0].offsets.start_offset,
            end_offset=self.parts[-1].offsets.end_offset,
        )

    @property
    def size_bytes(self) -> int:
        return sum(part.metadata.segment_size_bytes for part in self.parts)

    @property
    def max_timestamp_ms(self) -> int:
        return max(part.metadata.max_timestamp_ms for part in self.parts)


def waiting_merges(view: PartitionView) -> tuple[SegmentMerge, ...]:
    """Return the merges that are due, oldest first; no two of them share a segment.

    They wait for a slot, or for the end of a delay, such as a pause or an outage.
    """
    return tuple(_due(view)) if _may_merge(view) else ()


def next_merge(view: PartitionView, waiting: Sequence[SegmentMerge]) -> SegmentMerge | None:
    """Return the first merge that is due; None if there is none, or if merges are delayed.

    The parts of earlier merges may have to wait for readers before they are deleted. So merges are
    delayed while MERGES_LEFT_MAX of them have parts that are stored twice.
    """
    if not waiting or not view.is_store_reachable or copying_forbidden(view) is not None:
        return None
    if view.policy.state is not PolicyState.ACTIVE or PausableTask.DELETE in view.paused:
        return None
    return None if len(_with_parts_left(view)) >= MERGES_LEFT_MAX else waiting[0]


def merged_segments(view: PartitionView) -> tuple[ReplacedSegment, ...]:
    """Return finished segments whose offsets another finished segment contains, ascending.

    Of two segments with equal offsets, the one with the lower id stays. Repairs handle damaged
    segments, which replace nothing. A segment that an election cut off replaces nothing either.
    """
    if not _may_merge(view):
        return ()
    records = {record.metadata.segment_id: record for record in view.segments}
    return tuple(
        ReplacedSegment(
            record=records[part.metadata.segment_id],
            replaced_by=(widest.metadata.segment_id,),
        )
        for part, widest in _with_widest(view)
        if part is not widest
    )


def _may_merge(view: PartitionView) -> bool:
    """Return whether merges are enabled, and the stored history is not in doubt."""
    is_enabled = view.limits.merges_streams and view.is_streamed
    return is_enabled and not view.is_diverged and view.conflict_offset is None


def _widest_first(part: StoredRange) -> tuple[int, int, int]:
    return part.offsets.start_offset, -part.offsets.end_offset, part.metadata.segment_id.id.int


def _sound(view: PartitionView) -> Iterator[StoredRange]:
    """Yield the segments that are whole in the lineage and not known to be unreadable."""
    reported = {anomaly.segment for anomaly in view.state.anomalies}
    unreadable = view.damage.damaged | view.unsupported | reported
    for part in view.stored:
        if part.metadata.segment_id.id not in unreadable and part.offsets == part.metadata.offsets:
            yield part


def _with_widest(view: PartitionView) -> Iterator[tuple[StoredRange, StoredRange]]:
    """Yield each sound segment with one that contains all of its offsets: itself or a wider one."""
    widest: StoredRange | None = None
    for part in sorted(_sound(view), key=_widest_first):
        if widest is None or part.offsets.end_offset > widest.offsets.end_offset:
            widest = part
        yield part, widest


def _with_parts_left(view: PartitionView) -> set[RemoteLogSegmentId]:
    """Return the segments that replace other segments whose deletion has not finished."""
    pairs = tuple(_with_widest(view))
    found = {widest.metadata.segment_id for part, widest in pairs if part is not widest}
    whole = [part for part, widest in pairs if part is widest]
    for record in view.segments:
        is_started = record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
        if is_started and not record.is_dead_lettered:
            offsets = record.metadata.offsets
            index = bisect_right(whole, offsets.start_offset, key=_start_offset) - 1
            if index >= 0 and offsets.end_offset <= whole[index].offsets.end_offset:
                found.add(whole[index].metadata.segment_id)
    return found


def _start_offset(part: StoredRange) -> int:
    return part.offsets.start_offset


def _due(view: PartitionView) -> Iterator[SegmentMerge]:
    for run in _runs(view):
        first = 0
        while first < len(run):
            parts = _parts_from(view, run, first)
            if parts:
                yield SegmentMerge(parts=parts)
            first += max(1, len(parts))


def _runs(view: PartitionView) -> Iterator[list[StoredRange]]:
    """Yield the segments that may be merged, as runs of adjacent segments, ascending."""
    old = {record.metadata.segment_id for record in view.segments if _is_old(view, record)}
    excluded = _overlapping(view.stored) | _with_parts_left(view)
    mergeable = {
        part.metadata.segment_id
        for part in _sound(view)
        if _is_small(view, part)
        and part.metadata.segment_id in old
        and part.metadata.segment_id not in excluded
        and view.lineage.within(part.offsets) == part.metadata.segment_leader_epochs
    }
    run: list[StoredRange] = []
    for part in view.stored:
        is_mergeable = part.metadata.segment_id in mergeable
        adjoins = bool(run) and run[-1].offsets.end_offset == part.offsets.start_offset
        if run and not (is_mergeable and adjoins):
            yield run
            run = []
        if is_mergeable:
            run.append(part)
    if run:
        yield run


def _overlapping(stored: Sequence[StoredRange]) -> set[RemoteLogSegmentId]:
    """Return the segments that overlap another one; `stored` ascends."""
    found = set()
    widest: StoredRange | None = None
    for part in stored:
        if widest is not None and part.offsets.overlaps(widest.offsets):
            found |= {part.metadata.segment_id, widest.metadata.segment_id}
        if widest is None or part.offsets.end_offset > widest.offsets.end_offset:
            widest = part
    return found


def _is_old(view: PartitionView, record: SegmentRecord) -> bool:
    """Return whether a segment has been stored for a rollover time, by the brokers' clock."""
    return view.moment.broker_ms - record.changed_ms >= view.offload.segment_rollover_ms


def _is_small(view: PartitionView, part: StoredRange) -> bool:
    """Return whether the segment is small, and begins at or above the log start."""
    size_bytes = part.metadata.segment_size_bytes
    log_start_offset = view.state.log_start_offset or 0
    is_readable = part.offsets.start_offset >= log_start_offset
    return is_readable and 0 < size_bytes * SMALL_SHARE < _greatest_bytes(view)


def _greatest_bytes(view: PartitionView) -> int:
    retention_bytes = view.policy.retention_bytes
    greatest_bytes = view.offload.segment_max_bytes
    if retention_bytes < 0:
        return greatest_bytes
    return min(greatest_bytes, retention_bytes // RETENTION_SHARES)


def _parts_from(
    view: PartitionView, run: Sequence[StoredRange], first: int
) -> tuple[StoredRange, ...]:
    """Return the largest merge that begins at index `first` of a run; empty if there is none."""
    total_bytes = largest_bytes = 0
    count = 0
    for number, part in enumerate(run[first : first + MERGE_MAX_PARTS], start=1):
        size_bytes = part.metadata.segment_size_bytes
        total_bytes += size_bytes
        largest_bytes = max(largest_bytes, size_bytes)
        offset_count = part.offsets.end_offset - run[first].offsets.start_offset
        if total_bytes > _greatest_bytes(view) or offset_count > GREATEST_OFFSET_COUNT:
            break
        if not _expires_together(view, run[first], part):
            break
        if total_bytes >= MERGE_GROWTH * largest_bytes:
            count = number
    return tuple(run[first : first + count])


def _expires_together(view: PartitionView, first: StoredRange, last: StoredRange) -> bool:
    """Return whether the timestamps of two segments are so close that both may expire together."""
    retention_ms = view.policy.retention_ms
    span_ms = last.metadata.max_timestamp_ms - first.metadata.max_timestamp_ms
    return retention_ms < 0 or span_ms <= retention_ms // RETENTION_SHARES
