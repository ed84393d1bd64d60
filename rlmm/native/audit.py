"""Audits the records of Kafka's own tiered storage. Pure.

The audit checks only metadata, because only the cluster's RemoteStorageManager knows the objects'
names. It finds gaps by offsets, regardless of leader epochs. Memory: all segments that are not
deleted, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from rlmm.native.records import (
    NativePartitionDeleteState,
    NativeRecord,
    NativeSegmentState,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from rlmm.positions import MetadataPosition
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.ranges import OffsetRange


class NativeFindingKind(Enum):
    """Represents the kind of a finding; the value is its name in output."""

    DANGLING_COPY = "dangling_copy"
    DANGLING_DELETE = "dangling_delete"
    DANGLING_PARTITION_DELETE = "dangling_partition_delete"
    GAP = "gap"
    UNKNOWN_SEGMENT = "unknown_segment"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePosition:
    """Represents a record's position and its LogAppendTime."""

    position: MetadataPosition
    append_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFinding:
    """Represents one finding, at the position of the record that shows it.

    For a gap, this is the last record of the segment after the gap. `segment_id` is None if the
    finding is about no single segment. `offsets` is None if no offsets are known.
    """

    kind: NativeFindingKind
    native_position: NativePosition
    topic_id_partition: TopicIdPartition
    segment_id: RemoteLogSegmentId | None = None
    offsets: OffsetRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    native_position: NativePosition
    state: NativeSegmentState
    offsets: OffsetRange | None  # None: no record of its start was read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletion:
    native_position: NativePosition
    state: NativePartitionDeleteState


class NativeAudit:
    """Finds faults in records, which are added in log order for each metadata partition.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._segments: dict[TopicIdPartition, dict[UUID, _Segment]] = {}
        self._deletions: dict[TopicIdPartition, _Deletion] = {}

    def add(self, record: NativeRecord, native_position: NativePosition) -> None:
        """Take the next record; ignore a snapshot.

        Raises CorruptError if the record's offsets are not a range; it then has no effect.
        """
        match record:
            case RemoteLogSegmentMetadataRecord(segment_id=segment_id, facts=facts):
                offsets = _offsets(facts.start_offset, facts.end_offset)
                segment = _Segment(
                    native_position=native_position, state=facts.state, offsets=offsets
                )
                self._put(segment_id, segment)
            case RemoteLogSegmentMetadataUpdateRecord(segment_id=segment_id, state=state):
                known = self._segments.get(segment_id.topic_id_partition, {}).get(segment_id.id)
                known = known or _Segment(
                    native_position=native_position, state=state, offsets=None
                )
                self._put(segment_id, replace(known, native_position=native_position, state=state))
            case RemotePartitionDeleteMetadataRecord(topic_id_partition=tip, state=state):
                if state is NativePartitionDeleteState.DELETE_PARTITION_FINISHED:
                    self._segments.pop(tip, None)
                    self._deletions.pop(tip, None)
                else:
                    self._deletions[tip] = _Deletion(native_position=native_position, state=state)

    def segments_count(self) -> int:
        """Return the number of known segments that are not deleted."""
        return sum(map(len, self._segments.values()))

    def findings(self, cut_off_ms: int) -> Iterator[NativeFinding]:
        """Yield the findings whose records were appended before `cut_off_ms`."""
        found = (
            *self._partition_deletions(),
            *(each for tip, known in self._segments.items() for each in _unsettled(tip, known)),
            *(
                each
                for tip, known in self._segments.items()
                if tip not in self._deletions
                for each in _gaps(tip, known.values())
            ),
        )
        return (each for each in found if each.native_position.append_time_ms < cut_off_ms)

    def _put(self, segment_id: RemoteLogSegmentId, segment: _Segment) -> None:
        known = self._segments.setdefault(segment_id.topic_id_partition, {})
        if segment.state is NativeSegmentState.DELETE_SEGMENT_FINISHED:
            known.pop(segment_id.id, None)
        else:
            known[segment_id.id] = segment

    def _partition_deletions(self) -> Iterator[NativeFinding]:
        for tip, deletion in self._deletions.items():
            yield NativeFinding(
                kind=NativeFindingKind.DANGLING_PARTITION_DELETE,
                native_position=deletion.native_position,
                topic_id_partition=tip,
            )


_UNSETTLED = {
    NativeSegmentState.COPY_SEGMENT_STARTED: NativeFindingKind.DANGLING_COPY,
    NativeSegmentState.DELETE_SEGMENT_STARTED: NativeFindingKind.DANGLING_DELETE,
}


def _unsettled(tip: TopicIdPartition, segments: Mapping[UUID, _Segment]) -> Iterator[NativeFinding]:
    for segment_uuid, segment in segments.items():
        kind = _UNSETTLED.get(segment.state)
        if segment.offsets is None:
            kind = NativeFindingKind.UNKNOWN_SEGMENT
        if kind is not None:
            yield NativeFinding(
                kind=kind,
                native_position=segment.native_position,
                topic_id_partition=tip,
                segment_id=RemoteLogSegmentId(topic_id_partition=tip, id=segment_uuid),
                offsets=segment.offsets,
            )


def _gaps(tip: TopicIdPartition, segments: Iterable[_Segment]) -> Iterator[NativeFinding]:
    finished = (
        (segment.offsets, segment.native_position)
        for segment in segments
        if segment.state is NativeSegmentState.COPY_SEGMENT_FINISHED and segment.offsets is not None
    )
    reached_offset: int | None = None
    for offsets, native_position in sorted(finished, key=lambda each: each[0]):
        if reached_offset is not None and offsets.start_offset > reached_offset:
            yield NativeFinding(
                kind=NativeFindingKind.GAP,
                native_position=native_position,
                topic_id_partition=tip,
                offsets=OffsetRange(start_offset=reached_offset, end_offset=offsets.start_offset),
            )
        reached_offset = max(reached_offset or 0, offsets.end_offset)


def _offsets(first_offset: int, last_offset: int) -> OffsetRange:
    try:
        return OffsetRange.from_inclusive(first_offset, last_offset)
    except ValueError as error:
        raise CorruptError(
            "cannot read a segment: its offsets are invalid", reason=str(error)
        ) from error
