"""Finds the stored segment from which to read an offset; if there is none, finds the reason.

As in Kafka's RemoteLogManager, the log's lineage gives the leader epoch that wrote the offset, and
that epoch gives the finished segment. Readers get only the part of the segment that agrees with the
lineage, at or above the log start. An offset that is not stored is below the log start, in a hole,
in a recorded gap, or beyond all stored offsets. Readers skip only recorded gaps, whose loss is
known; the other cases require different responses. StoredLog applies these rules to a list of all
segments of a partition. This module does not access objects, indexes or brokers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate
from uuid import UUID

from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.partition_state import PartitionState
from rsm.segment.coverage import StoredRange, covered_end, stored_ranges
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange


class Absence(Enum):
    """Represents the reason why no stored segment serves an offset."""

    BELOW_LOG_START = "below the log start"
    HOLE = "in a hole of the stored segments"
    RECORDED_GAP = "in a recorded gap"
    BEYOND_STORED = "beyond the stored segments"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStored:
    """Represents an offset that no stored segment serves.

    `until_offset` is the next offset that may be readable: the log start, or the end of the hole.
    For a recorded gap, it is the next offset to look up. It is None beyond all stored offsets.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    absence: Absence
    until_offset: int | None = None

    def error(self) -> NotFoundError:
        """Return this as an error, for a reader that has no other source."""
        return NotFoundError(
            f"cannot read the offset: it is {self.absence.value}",
            partition=self.topic_id_partition,
            offset=self.offset,
            until_offset=self.until_offset,
        )


class StoredLog:
    """Represents the readable stored offsets of one partition, and its recorded gaps. Immutable.

    `ranges` ascend by start, are at or above the log start, and may overlap. Memory: three
    references per range. The time of a lookup of a stored offset is logarithmic in the number of
    ranges.
    """

    def __init__(
        self,
        topic_id_partition: TopicIdPartition,
        ranges: Sequence[StoredRange],
        gaps: Iterable[OffsetRange],
    ) -> None:
        self.topic_id_partition = topic_id_partition
        self.ranges = tuple(ranges)
        self.gaps = tuple(gaps)
        self._starts = [each.offsets.start_offset for each in self.ranges]
        self._furthest = list(accumulate(self.ranges, _further))

    @classmethod
    def of(
        cls,
        topic_id_partition: TopicIdPartition,
        state: PartitionState,
        segments: Iterable[RemoteLogSegmentMetadata],
    ) -> StoredLog:
        """Return the log that consists of these segments, given the partition's current state."""
        gaps = (gap.offsets for gap in state.gaps)
        return cls(topic_id_partition, _readable(state, segments), gaps)

    def at(self, offset: int) -> StoredRange | NotStored:
        """Return the range that contains `offset` and has the highest end, or why there is none.

        The reason is never BELOW_LOG_START, because this class does not know the log start.
        """
        below = bisect_right(self._starts, offset)
        if below and offset in self._furthest[below - 1].offsets:
            return self._furthest[below - 1]
        until_offset = self.stored_above(offset)
        absence = Absence.BEYOND_STORED if until_offset is None else Absence.HOLE
        lost_end_offset = covered_end((), offset, gaps=self.gaps)
        if lost_end_offset > offset:
            absence = Absence.RECORDED_GAP
            until_offset = min(lost_end_offset, until_offset or lost_end_offset)
        return NotStored(
            topic_id_partition=self.topic_id_partition,
            offset=offset,
            absence=absence,
            until_offset=until_offset,
        )

    def stored_above(self, offset: int) -> int | None:
        """Return the lowest start of a range above `offset`; None if there is none."""
        number = bisect_right(self._starts, offset)
        return self._starts[number] if number < len(self._starts) else None

    def gap_above(self, offset: int) -> int | None:
        """Return the lowest start of a recorded gap above `offset`; None if there is none."""
        starts = (gap.start_offset for gap in self.gaps)
        return min((start for start in starts if start > offset), default=None)


def locate_around(
    state: PartitionState,
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    offset: int,
    failed: Collection[UUID],
) -> StoredRange | NotStored:
    """Return the result of `locate_in`, but prefer a segment that is not known to be damaged.

    `failed` contains segments that could not be read just now. A recorded anomaly is only a report,
    so a segment with an anomaly is still returned if there is no other segment.
    """
    stored = locate_in(state, metadata, topic_id_partition, offset)
    damaged = {*failed, *(anomaly.segment for anomaly in state.anomalies)}
    if isinstance(stored, NotStored) or stored.metadata.segment_id.id not in damaged:
        return stored
    sound = locate_sound(metadata, topic_id_partition, offset, damaged)
    if sound is None and failed:
        sound = locate_sound(metadata, topic_id_partition, offset, failed)
    return stored if sound is None else sound


def locate_sound(
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    offset: int,
    damaged: Collection[UUID],
) -> StoredRange | None:
    """Return a segment that contains `offset` and is not in `damaged`; None if there is none."""
    ranges = readable_ranges(metadata, topic_id_partition, offset)
    holding = [r for r in ranges if offset in r.offsets and r.metadata.segment_id.id not in damaged]
    return max(holding, key=lambda r: r.offsets.end_offset, default=None)


def locate(
    metadata: RemoteLogMetadataManager, topic_id_partition: TopicIdPartition, offset: int
) -> StoredRange | NotStored:
    """Return the segment from which to read `offset`, with its readable part.

    If segments overlap, the segment with the highest end in the offset's epoch wins. The caller
    must check that the metadata is complete (`RemoteLogMetadataManager.caught_up`).
    """
    state = metadata.partition_state(topic_id_partition)
    return locate_in(state, metadata, topic_id_partition, offset)


def locate_in(
    state: PartitionState,
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    offset: int,
) -> StoredRange | NotStored:
    """Return the result of `locate`, given the partition's current state."""
    first_offset = state.first_readable_offset
    if first_offset is not None and offset < first_offset:
        return NotStored(
            topic_id_partition=topic_id_partition,
            offset=offset,
            absence=Absence.BELOW_LOG_START,
            until_offset=first_offset,
        )
    # The lineage comes from `state`: it also limits the range, and reading it again takes time.
    epoch = state.lineage.epoch_for_offset(offset)
    if epoch is not None:
        found = metadata.remote_log_segment_metadata(topic_id_partition, offset, leader_epoch=epoch)
        readable = () if found is None else stored_ranges(state.lineage, (found,))
        if readable and offset in readable[0].offsets:
            return _from_log_start(readable[0], state)
    return _search(metadata, topic_id_partition, offset, state)


def readable_ranges(
    metadata: RemoteLogMetadataManager, topic_id_partition: TopicIdPartition, from_offset: int = 0
) -> tuple[StoredRange, ...]:
    """Return the readable ranges that end above `from_offset`, by start; they may overlap."""
    state = metadata.partition_state(topic_id_partition)
    records = metadata.list_remote_log_segments(
        topic_id_partition,
        states=(SegmentState.COPY_SEGMENT_FINISHED,),
        from_offset=from_offset,
    )
    readable = _readable(state, (record.metadata for record in records))
    return tuple(each for each in readable if each.offsets.end_offset > from_offset)


def log_start_offset(
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    local_start_offset: int,
) -> int:
    """Return the first offset of the log over both tiers, given the broker's own log start.

    This is the offset that the owner recorded or a client requested, or else the lower start of the
    two tiers. If nothing is stored, the broker's own log start counts if it is higher.
    """
    return log_start_of(
        local_start_offset,
        recorded_offset=metadata.partition_state(topic_id_partition).first_readable_offset,
        first_stored_offset=metadata.earliest_log_offset(topic_id_partition),
    )


def log_start_of(
    local_start_offset: int, *, recorded_offset: int | None, first_stored_offset: int | None
) -> int:
    """Compute `log_start_offset` from the metadata's values; a value is None if there is none."""
    if first_stored_offset is None:
        return max(local_start_offset, recorded_offset or 0)
    if recorded_offset is not None:
        return recorded_offset
    return min(first_stored_offset, local_start_offset)


def _search(
    metadata: RemoteLogMetadataManager, tip: TopicIdPartition, offset: int, state: PartitionState
) -> StoredRange | NotStored:
    """Search all segments for the offset, because the lookup by epoch failed."""
    gaps = (gap.offsets for gap in state.gaps)
    found = StoredLog(tip, readable_ranges(metadata, tip, offset), gaps).at(offset)
    if isinstance(found, StoredRange) or found.absence is not Absence.HOLE:
        return found
    lowest = metadata.earliest_log_offset(tip)
    unknown_below = state.first_readable_offset is None and lowest is not None and offset < lowest
    return replace(found, absence=Absence.BELOW_LOG_START) if unknown_below else found


def _readable(
    state: PartitionState, segments: Iterable[RemoteLogSegmentMetadata]
) -> tuple[StoredRange, ...]:
    """Return the parts of segments in the lineage and above the log start, ascending by start."""
    first_offset = state.first_readable_offset or 0
    return tuple(
        _from_log_start(each, state)
        for each in stored_ranges(state.lineage, segments)
        if each.offsets.end_offset > first_offset
    )


def _from_log_start(stored: StoredRange, state: PartitionState) -> StoredRange:
    """Return the part of a stored range at or above the log start."""
    start = state.first_readable_offset
    if start is None or start <= stored.offsets.start_offset:
        return stored
    offsets = OffsetRange(start_offset=start, end_offset=stored.offsets.end_offset)
    return replace(stored, offsets=offsets)


def _further(one: StoredRange, other: StoredRange) -> StoredRange:
    """Return the range with the higher end; `one` if both end at the same offset."""
    return other if other.offsets.end_offset > one.offsets.end_offset else one
