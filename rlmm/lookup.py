"""Where an offset is stored: the segment that answers for it, or why none does.

As Kafka's RemoteLogManager reads: the leader epoch that wrote the offset, by the log's lineage,
then the finished segment of that epoch. A segment answers only as far as the lineage agrees with
it, and from the log start on. An offset that nothing answers for is never stepped over: it lies
below the log start, in a hole, or behind all that is stored, and the three mean different things
to a reader. A recorded gap is one that readers step over: what lay there is lost, and that is on
record. Owns this look-up only; must not know objects, indexes or brokers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from rlmm.partition_state import PartitionState
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.coverage import StoredRange, covered_end, stored_ranges
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange


class Absence(Enum):
    """Why no stored segment answers for an offset."""

    BELOW_LOG_START = "below the log start"
    HOLE = "in a hole of what is stored"
    RECORDED_GAP = "in a recorded gap"
    BEYOND_STORED = "beyond what is stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStored:
    """No stored segment answers for `offset`.

    `until_offset` is the next one that is stored: the log start, or the hole's end; None beyond all
    that is stored. For a recorded gap, the next one to look for.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    absence: Absence
    until_offset: int | None = None

    def error(self) -> NotFoundError:
        """This as an error, for a reader that has nowhere else to look."""
        return NotFoundError(
            f"offset is {self.absence.value}",
            partition=self.topic_id_partition,
            offset=self.offset,
            until_offset=self.until_offset,
        )


def locate_around(
    state: PartitionState,
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    offset: int,
    failed: Collection[UUID],
) -> StoredRange | NotStored:
    """As `locate_in`; of several segments, one that is not known to be damaged.

    `failed` are those that could not be read just now. An anomaly on record is only a report: a
    segment that has one answers where no other does.
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
    """A segment that holds `offset` and is none of `damaged`; None if there is no such one."""
    ranges = readable_ranges(metadata, topic_id_partition, offset)
    holding = [r for r in ranges if offset in r.offsets and r.metadata.segment_id.id not in damaged]
    return max(holding, key=lambda r: r.offsets.end_offset, default=None)


def locate(
    metadata: RemoteLogMetadataManager, topic_id_partition: TopicIdPartition, offset: int
) -> StoredRange | NotStored:
    """The segment to read `offset` from, with the part of it that may be served.

    Of segments that overlap, the one that reaches furthest in the offset's epoch. Whether the
    answer is complete is for the caller to know (`RemoteLogMetadataManager.caught_up`).
    """
    state = metadata.partition_state(topic_id_partition)
    return locate_in(state, metadata, topic_id_partition, offset)


def locate_in(
    state: PartitionState,
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    offset: int,
) -> StoredRange | NotStored:
    """As `locate`, by what the metadata just said of the partition."""
    first_offset = state.first_readable_offset
    if first_offset is not None and offset < first_offset:
        return NotStored(
            topic_id_partition=topic_id_partition,
            offset=offset,
            absence=Absence.BELOW_LOG_START,
            until_offset=first_offset,
        )
    epoch = state.lineage.epoch_for_offset(offset)
    if epoch is not None:
        found = metadata.remote_log_segment_metadata(topic_id_partition, epoch, offset)
        readable = () if found is None else stored_ranges(state.lineage, (found,))
        if readable and offset in readable[0].offsets:
            return _from_log_start(readable[0], state)
    return _search(metadata, topic_id_partition, offset, state)


def readable_ranges(
    metadata: RemoteLogMetadataManager, topic_id_partition: TopicIdPartition, from_offset: int = 0
) -> tuple[StoredRange, ...]:
    """All that may be served above `from_offset`, ascending by start; ranges may overlap."""
    state = metadata.partition_state(topic_id_partition)
    first_offset = max(from_offset, state.first_readable_offset or 0)
    records = metadata.list_remote_log_segments(
        topic_id_partition,
        states=(SegmentState.COPY_SEGMENT_FINISHED,),
        from_offset=first_offset,
    )
    ranges = stored_ranges(state.lineage, (record.metadata for record in records))
    return tuple(_from_log_start(r, state) for r in ranges if r.offsets.end_offset > first_offset)


def log_start_offset(
    metadata: RemoteLogMetadataManager,
    topic_id_partition: TopicIdPartition,
    local_start_offset: int,
) -> int:
    """The first offset of the log over both tiers, given the broker's own log start.

    As recorded by a leader or requested by a client; where neither was, the lowest that either
    tier has. Where nothing is stored any more, the broker may have moved on by itself.
    """
    return log_start_of(
        local_start_offset,
        recorded_offset=metadata.partition_state(topic_id_partition).first_readable_offset,
        first_stored_offset=metadata.earliest_log_offset(topic_id_partition),
    )


def log_start_of(
    local_start_offset: int, *, recorded_offset: int | None, first_stored_offset: int | None
) -> int:
    """As `log_start_offset`, by what the metadata says: None, what it does not have."""
    if first_stored_offset is None:
        return max(local_start_offset, recorded_offset or 0)
    if recorded_offset is not None:
        return recorded_offset
    return min(first_stored_offset, local_start_offset)


def _search(
    metadata: RemoteLogMetadataManager, tip: TopicIdPartition, offset: int, state: PartitionState
) -> StoredRange | NotStored:
    """What the look-up by epoch does not find: another segment that has it, or what is around."""
    above = readable_ranges(metadata, tip, offset)
    holding = [r for r in above if offset in r.offsets]
    if holding:
        return max(holding, key=lambda r: r.offsets.end_offset)
    lost_end_offset = covered_end((), offset, gaps=(gap.offsets for gap in state.gaps))
    if lost_end_offset > offset:
        ends = (lost_end_offset, *(r.offsets.start_offset for r in above[:1]))
        return NotStored(
            topic_id_partition=tip,
            offset=offset,
            absence=Absence.RECORDED_GAP,
            until_offset=min(ends),
        )
    if not above:
        return NotStored(topic_id_partition=tip, offset=offset, absence=Absence.BEYOND_STORED)
    until_offset = above[0].offsets.start_offset
    lowest = metadata.earliest_log_offset(tip)
    unknown_below = state.first_readable_offset is None and lowest is not None and offset < lowest
    return NotStored(
        topic_id_partition=tip,
        offset=offset,
        absence=Absence.BELOW_LOG_START if unknown_below else Absence.HOLE,
        until_offset=until_offset,
    )


def _from_log_start(stored: StoredRange, state: PartitionState) -> StoredRange:
    """What of a segment is not below the log start."""
    start = state.first_readable_offset
    if start is None or start <= stored.offsets.start_offset:
        return stored
    offsets = OffsetRange(start_offset=start, end_offset=stored.offsets.end_offset)
    return replace(stored, offsets=offsets)
