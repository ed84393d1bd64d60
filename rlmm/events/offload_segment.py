"""Defines the account of an offload segment (PIP-76): one record for each status. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from uuid import UUID

from google.protobuf.message import DecodeError

from rlmm.events.event import Event
from rlmm.events.family import PartitionFamily
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.rows import KeptReader, KnownRecords
from rlmm.positions import TopicRecord
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind, partition_subject
from rlmm.state.offload_segments import (
    STATUS_ORDER,
    DriverProperty,
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rlmm.state.partition_state import PartitionState
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata_codec import (
    enum_from_number,
    id_from_bytes,
    partition_from_message,
    partition_to_message,
    writer_from_message,
    writer_to_message,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSegmentChanged(Event):
    """Represents an offload segment that has reached a status.

    Any process may write it, because it does not decide what is stored.
    """

    topic_id_partition: TopicIdPartition
    segment: OffloadSegmentRecord


class OffloadSegmentFamily(PartitionFamily[OffloadSegmentChanged, pb.OffloadSegmentChanged]):
    """Defines the family of offload segments; the furthest status of a segment counts.

    Each status of a segment has a separate key, whose last record wins. So a late record of an
    earlier status changes nothing, even in the compacted topic. Versions that do not know this
    event skip its records.
    """

    event_type = OffloadSegmentChanged
    kind = RecordKind.OFFLOAD_SEGMENT
    field = "offload_segment_changed"
    reuses_keys = True

    def to_message(self, event: OffloadSegmentChanged) -> pb.OffloadSegmentChanged:
        segment = event.segment
        return pb.OffloadSegmentChanged(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            writer=writer_to_message(segment.writer),
            id=segment.id.bytes,
            status=segment.status.name,
            assigned_ms=segment.assigned_ms,
            begin=_to_message(segment.begin),
            segment_ids=[each.bytes for each in segment.segment_ids],
            driver_metadata=[
                pb.OffloadDriverProperty(name=each.name, value=each.value)
                for each in segment.driver_metadata
            ],
            offloaded_ms=segment.offloaded_ms,
            end=None if segment.end is None else _to_message(segment.end),
            objects=segment.objects,
        )

    def from_message(
        self, event_id: UUID, message: pb.OffloadSegmentChanged
    ) -> OffloadSegmentChanged:
        return OffloadSegmentChanged(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            segment=_segment_of(message),
        )

    def key_id(self, event: OffloadSegmentChanged) -> UUID:
        return status_key_id(event.segment.id, event.segment.status)

    def rule(
        self, before: PartitionState, event: OffloadSegmentChanged, record: TopicRecord
    ) -> PartitionState | Refusal:
        """Leave the state unchanged: a partition can have too many offload segments for it."""
        return before

    def fold(
        self, state: FoldState, parsed: OffloadSegmentChanged, record: TopicRecord
    ) -> Refusal | None:
        """Store the record's content with its key, unless the record is refused."""
        refusal = super().fold(state, parsed, record)
        if refusal is None:
            content = self.to_message(parsed).SerializeToString()
            state.put_record_key(self.record_key(parsed), record.offset, content)
        return refusal

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """Remove the record, and mark the partition as changed."""
        state.put_partition(key.subject, state.partition_state(key.subject))
        return super().fold_tombstone(state, key)

    def from_content(self, content: bytes) -> OffloadSegmentRecord:
        """Decode the kept record. Raises CorruptError."""
        try:
            return _segment_of(pb.OffloadSegmentChanged.FromString(content))
        except DecodeError as error:
            raise CorruptError("cannot read an offload segment: its message is invalid") from error

    def keys_ending_with(
        self, segment_id: RemoteLogSegmentId, records: KnownRecords
    ) -> Iterator[RecordKey]:
        """Yield the keys of this segment's account, and of failed attempts without a segment.

        An attempt that fails before its COPY_SEGMENT_STARTED leaves no segment to delete.
        """
        tip = segment_id.topic_id_partition
        failed = bytes((OffloadSegmentStatus.FAILED.value,))
        ids = [each.id for each in _furthest(records.kept_values(self, tip, failed))]
        gone = (each for each in ids if records.segment_entry(replace(segment_id, id=each)) is None)
        subject = partition_subject(tip)
        for segment, status in product((segment_id.id, *gone), STATUS_ORDER):
            key_id = status_key_id(segment, status).bytes
            key = RecordKey(kind=self.kind, subject=subject, event_id=key_id)
            if records.has_record(key):
                yield key


OFFLOAD_SEGMENTS = OffloadSegmentFamily()


def offload_segments(
    metadata: KeptReader, topic_id_partition: TopicIdPartition
) -> tuple[OffloadSegmentRecord, ...]:
    """Return the account of a partition's offload segments (PIP-76), by ascending begin.

    The account covers assigned, failed and offloaded segments. `write_tombstones` removes a segment
    from it some time after the segment's objects are deleted. Use it only for display, and to
    select streamed segments for an operator. Base all decisions on the records of the stored
    segments.
    """
    return _furthest(metadata.kept_values(OFFLOAD_SEGMENTS, topic_id_partition))


def _furthest(records: Iterable[OffloadSegmentRecord]) -> tuple[OffloadSegmentRecord, ...]:
    """Combine the records of each segment: the furthest gives status, end and end time."""
    furthest: dict[UUID, OffloadSegmentRecord] = {}
    assigned: dict[UUID, OffloadSegmentRecord] = {}
    for found in records:
        if found.status is OffloadSegmentStatus.ASSIGNED:
            assigned[found.id] = found
        known = furthest.get(found.id)
        if known is None or known.precedes(found):
            furthest[found.id] = found
    segments = (
        assigned[each.id].reached(each) if each.id in assigned else each
        for each in furthest.values()
    )
    return tuple(sorted(segments, key=lambda each: (each.begin.offset, each.id)))


def status_key_id(segment_id: UUID, status: OffloadSegmentStatus) -> UUID:
    """Return the id in the key of a status: the segment's id with the status as first byte."""
    return UUID(bytes=bytes((status.value,)) + segment_id.bytes[1:])


def _segment_of(message: pb.OffloadSegmentChanged) -> OffloadSegmentRecord:
    status = enum_from_number(OffloadSegmentStatus, message.status, "status of an offload segment")
    try:
        return OffloadSegmentRecord(
            id=id_from_bytes(message.id),
            status=status,
            writer=writer_from_message(message.writer),
            assigned_ms=message.assigned_ms,
            begin=_position_of(message.begin),
            segment_ids=tuple(map(id_from_bytes, message.segment_ids)),
            driver_metadata=tuple(
                DriverProperty(name=each.name, value=each.value) for each in message.driver_metadata
            ),
            offloaded_ms=message.offloaded_ms if message.HasField("offloaded_ms") else None,
            end=_position_of(message.end) if message.HasField("end") else None,
            objects=tuple(message.objects),
        )
    except ValueError as error:
        raise CorruptError("cannot read an offload segment", reason=str(error)) from error


def _to_message(position: OffloadPosition) -> pb.OffloadPosition:
    return pb.OffloadPosition(
        ledger_id=position.ledger_id, entry_id=position.entry_id, offset=position.offset
    )


def _position_of(message: pb.OffloadPosition) -> OffloadPosition:
    return OffloadPosition(
        ledger_id=message.ledger_id, entry_id=message.entry_id, offset=message.offset
    )
