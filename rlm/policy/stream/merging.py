"""Decides which small segments of a streamed partition are merged, and what they replace. Pure.

    adjacent small segments → copied as one segment → it is finished → the small ones are deleted

A merge takes at most MERGE_MAX_PARTS segments, and the merged one has at least MERGE_GROWTH times
the size of its largest part. So each merge moves a byte into a segment at least that many times as
large, and a byte that was streamed in a segment of `s` bytes is copied again at most
log(`max.size.per.offload.segment.bytes` / s) times, to the base MERGE_GROWTH. The largest possible
merge is preferred, so most bytes are copied less often.

All finished segments of a streamed partition count, however they were written: a merged segment can
be merged again. No record marks a merge: a finished segment replaces each one whose offsets it has,
so a new leader continues with the deletions of the one before.
"""

from __future__ import annotations

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
"""How many times as large as its largest part a merged segment is, at least."""

MERGE_MAX_PARTS = 128
"""The most segments of one merge: each costs requests, and its indexes are in memory."""

RETENTION_SHARES = 8
"""A merged segment has at most this fraction of a retention: it expires as a whole."""


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


def next_merge(view: PartitionView) -> SegmentMerge | None:
    """Return the oldest segments to merge; None if there are none, or something forbids it.

    A merge waits until all parts of earlier ones are deleted, so a partition has at most the parts
    of one merge twice.
    """
    if not _may_merge(view) or not view.is_store_reachable or copying_forbidden(view) is not None:
        return None
    if view.policy.state is not PolicyState.ACTIVE or PausableTask.DELETE in view.paused:
        return None
    if _has_parts_left(view):
        return None
    for run in _runs(view):
        for first in range(len(run)):
            parts = _parts_from(view, run, first)
            if parts:
                return SegmentMerge(parts=parts)
    return None


def merged_segments(view: PartitionView) -> tuple[ReplacedSegment, ...]:
    """Return finished segments whose offsets another finished segment has, ascending.

    Of two segments with equal offsets, the one with the lower id stays. Damaged segments are left
    to repairs, and replace nothing. A segment that an election cut off replaces nothing either.
    """
    if not _may_merge(view):
        return ()
    records = {record.metadata.segment_id: record for record in view.segments}
    found = []
    widest: StoredRange | None = None
    for part in sorted(_sound(view), key=_widest_first):
        if widest is not None and part.offsets.end_offset <= widest.offsets.end_offset:
            found.append(
                ReplacedSegment(
                    record=records[part.metadata.segment_id],
                    replaced_by=(widest.metadata.segment_id,),
                )
            )
        else:
            widest = part
    return tuple(found)


def _may_merge(view: PartitionView) -> bool:
    """Return whether merges are enabled, and the stored history is not in doubt."""
    is_enabled = view.limits.merges_streams and view.is_streamed
    return is_enabled and not view.is_diverged and view.conflict_offset is None


def _widest_first(part: StoredRange) -> tuple[int, int, int]:
    return part.offsets.start_offset, -part.offsets.end_offset, part.metadata.segment_id.id.int


def _sound(view: PartitionView) -> Iterator[StoredRange]:
    """Yield the segments that are whole in the lineage, and readable as far as anyone knows."""
    reported = {anomaly.segment for anomaly in view.state.anomalies}
    unreadable = view.damage.damaged | view.unsupported | reported
    for part in view.stored:
        if part.metadata.segment_id.id not in unreadable and part.offsets == part.metadata.offsets:
            yield part


def _has_parts_left(view: PartitionView) -> bool:
    """Return whether a segment that a finished one replaces is not deleted yet."""
    deleted = (
        record.metadata.offsets
        for record in view.segments
        if record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
        and not record.is_dead_lettered
    )
    whole = [part.offsets for part in _sound(view)]
    return bool(merged_segments(view)) or any(
        other.start_offset <= offsets.start_offset and offsets.end_offset <= other.end_offset
        for offsets in deleted
        for other in whole
    )


def _runs(view: PartitionView) -> Iterator[list[StoredRange]]:
    """Yield the segments that may be merged, as runs without a gap or an overlap, ascending."""
    old = {record.metadata.segment_id for record in view.segments if _is_old(view, record)}
    overlapping = _overlapping(view.stored)
    mergeable = {
        part.metadata.segment_id
        for part in _sound(view)
        if part.metadata.segment_id in old
        and part.metadata.segment_id not in overlapping
        and _is_small(view, part)
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
    """Return the segments that have offsets of another; `stored` ascends."""
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
    """Return whether a merge can have the segment, and no log start is in it."""
    size_bytes = part.metadata.segment_size_bytes
    log_start_offset = view.state.log_start_offset or 0
    is_readable = part.offsets.start_offset >= log_start_offset
    return is_readable and 0 < size_bytes * MERGE_GROWTH <= _greatest_bytes(view)


def _greatest_bytes(view: PartitionView) -> int:
    retention_bytes = view.policy.retention_bytes
    greatest_bytes = view.offload.segment_max_bytes
    if retention_bytes < 0:
        return greatest_bytes
    return min(greatest_bytes, retention_bytes // RETENTION_SHARES)


def _parts_from(
    view: PartitionView, run: Sequence[StoredRange], first: int
) -> tuple[StoredRange, ...]:
    """Return the largest merge that begins with a segment of a run; empty if there is none."""
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
    """Return whether the retention in time may wait for the last of these segments."""
    retention_ms = view.policy.retention_ms
    span_ms = last.metadata.max_timestamp_ms - first.metadata.max_timestamp_ms
    return retention_ms < 0 or span_ms <= retention_ms // RETENTION_SHARES
