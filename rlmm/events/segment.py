"""Defines the events of segments: the next state, and the dead letter. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import E, EventFamily, M, S
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.parsed_segment import ParsedSegment
from rlmm.positions import TopicRecord
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, RecordKey, RecordKind, segment_subject
from rlmm.state.segment_entry import ACCEPTED, REFUSED, SegmentEntry, new_entry, with_record
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.metadata_codec import (
    id_from_bytes,
    metadata_from_message,
    metadata_to_message,
    partition_from_message,
    partition_to_message,
    state_from_number,
)

_STARTED = SegmentState.COPY_SEGMENT_STARTED
_FINISHED = SegmentState.COPY_SEGMENT_FINISHED
_DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED
_LAST_MS = (1 << 63) - 1
_CHUNKS_FOLD_VERSION = 5
_MAY_FOLLOW: Mapping[SegmentState, tuple[SegmentState | None, ...]] = {
    _STARTED: (None,),
    _FINISHED: (None, _STARTED),
    _DELETE_STARTED: (_STARTED, _FINISHED),
    SegmentState.DELETE_SEGMENT_FINISHED: (_DELETE_STARTED,),
}
"""The states allowed before each state; None means that no record was accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEvent(Event):
    """Represents a segment's next state, with its whole metadata.

    `expected_state` is the state that a DELETE_SEGMENT_STARTED is based on; None if nothing was
    known. `copy_deadline_ms` is the LogAppendTime after which a COPY_SEGMENT_FINISHED is refused.
    It is 0 for other states, and if there is no deadline (metadata that was rebuilt from the
    store). `copy_timeout_ms` is the time limit of the attempt that a COPY_SEGMENT_STARTED begins.
    """

    metadata: RemoteLogSegmentMetadata
    expected_state: SegmentState | None = None
    copy_timeout_ms: int = 0
    copy_deadline_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDeadLettered(Event):
    """Represents the dead letter of a segment whose deletion failed too often.

    The segment stays in DELETE_SEGMENT_STARTED. Only `rlm-repair` or an operator retries it.
    """

    segment_id: RemoteLogSegmentId
    attempts: int


class _SegmentKeyFamily(EventFamily[E, M, S]):
    """Represents a family of events with a segment's key; their tombstones fold alike."""

    kind = RecordKind.SEGMENT

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """Erase the segment, but keep the ids of its other records for their tombstones."""
        before = state.segment_entry(key.subject)
        if before is not None:
            records = before.without_record(key.event_id)
            state.put_segment(key.subject, SegmentEntry(records=records) if records else None)
        return None


class SegmentFamily(_SegmentKeyFamily[SegmentEvent, pb.SegmentEvent, ParsedSegment]):
    """Defines the family of segment events; the fold reads only the fields of ParsedSegment."""

    event_type = SegmentEvent
    field = "segment"

    def needed_fold_version(self, message: pb.SegmentEvent) -> int:
        """Return the first version that knows tables of chunks if the segment has one, else 1.

        Older rules keep the table as unknown fields, and would delete only the objects outside the
        table.
        """
        return _CHUNKS_FOLD_VERSION if message.metadata.HasField("chunks") else 1

    def to_message(self, event: SegmentEvent) -> pb.SegmentEvent:
        expected = event.expected_state
        return pb.SegmentEvent(
            metadata=metadata_to_message(event.metadata),
            expected_state=None if expected is None else expected.name,
            copy_timeout_ms=event.copy_timeout_ms,
            copy_deadline_ms=event.copy_deadline_ms,
        )

    def from_message(self, event_id: UUID, message: pb.SegmentEvent) -> SegmentEvent:
        if message.copy_timeout_ms < 0 or message.copy_deadline_ms < 0:
            raise CorruptError("cannot read a segment event: a time limit of its copy is negative")
        expected = message.expected_state
        return SegmentEvent(
            event_id=event_id,
            metadata=metadata_from_message(message.metadata),
            expected_state=state_from_number(expected) if expected else None,
            copy_timeout_ms=message.copy_timeout_ms,
            copy_deadline_ms=message.copy_deadline_ms,
        )

    def record_key(self, event: SegmentEvent) -> RecordKey:
        return _record_key(event.metadata.segment_id, event.event_id)

    def partition_of(self, event: SegmentEvent) -> TopicIdPartition | None:
        return event.metadata.topic_id_partition

    def topic_of(self, event: SegmentEvent) -> str | None:
        return event.metadata.topic_id_partition.topic

    def fold(self, state: FoldState, parsed: ParsedSegment, record: TopicRecord) -> Refusal | None:
        """Set a segment's next state; keep only the id of a refused record."""
        (
            subject,
            event_id,
            wanted,
            _,
            _,
            base_offset,
            end_offset,
            size_bytes,
            has_transaction_index,
            epochs,
            copy_timeout_ms,
            deadline_ms,
            value,
        ) = parsed
        append_time_ms = record.append_time_ms
        before = state.segment_entry(subject)
        refusal = _segment_refusal(state, parsed, before, append_time_ms)
        if refusal:
            _note_refused(state, subject, before, event_id)
            return refusal
        if wanted is _STARTED and copy_timeout_ms:
            deadline_ms = min(append_time_ms + copy_timeout_ms, _LAST_MS)
        if before and before.copy_deadline_ms > deadline_ms:
            deadline_ms = before.copy_deadline_ms
        entry = new_entry(
            (
                with_record(before, ACCEPTED, event_id),
                wanted,
                before.is_dead_lettered if before else False,
                base_offset,
                end_offset,
                size_bytes,
                has_transaction_index,
                append_time_ms,
                deadline_ms,
                record.partition,
                record.offset,
                epochs,
                value,
            )
        )
        state.put_segment(subject, entry)
        return None


class DeadLetteredFamily(
    _SegmentKeyFamily[SegmentDeadLettered, pb.SegmentDeadLettered, SegmentDeadLettered]
):
    """Defines the family of segments' dead letters; the keys are those of segment events."""

    event_type = SegmentDeadLettered
    field = "segment_dead_lettered"

    def to_message(self, event: SegmentDeadLettered) -> pb.SegmentDeadLettered:
        return pb.SegmentDeadLettered(
            topic_id_partition=partition_to_message(event.segment_id.topic_id_partition),
            id=event.segment_id.id.bytes,
            attempts=event.attempts,
        )

    def from_message(self, event_id: UUID, message: pb.SegmentDeadLettered) -> SegmentDeadLettered:
        return SegmentDeadLettered(
            event_id=event_id,
            segment_id=RemoteLogSegmentId(
                topic_id_partition=partition_from_message(message.topic_id_partition),
                id=id_from_bytes(message.id),
            ),
            attempts=message.attempts,
        )

    def record_key(self, event: SegmentDeadLettered) -> RecordKey:
        return _record_key(event.segment_id, event.event_id)

    def partition_of(self, event: SegmentDeadLettered) -> TopicIdPartition | None:
        return event.segment_id.topic_id_partition

    def topic_of(self, event: SegmentDeadLettered) -> str | None:
        return event.segment_id.topic_id_partition.topic

    def fold(
        self, state: FoldState, parsed: SegmentDeadLettered, record: TopicRecord
    ) -> Refusal | None:
        """Mark a failed deletion; the segment stays in its state."""
        subject, event_id = segment_subject(parsed.segment_id), parsed.event_id.bytes
        before = state.segment_entry(subject)
        if before is None or before.state is not _DELETE_STARTED:
            _note_refused(state, subject, before, event_id)
            unknown = before is None or before.state is None
            return Refusal.UNKNOWN_SEGMENT if unknown else Refusal.UNEXPECTED_STATE
        records = with_record(before, ACCEPTED, event_id)
        state.put_segment(subject, before._replace(records=records, is_dead_lettered=True))
        return None


def segment_keys(entries: Mapping[bytes, SegmentEntry]) -> Iterator[RecordKey]:
    """Yield the keys of all remaining records of these segments, by subject, in removal order.

    If the removal stops early, the remaining records must not look like a live segment to a process
    that never reads the removed ones. So refused records come first, then accepted ones in log
    order.
    """
    for subject, entry in entries.items():
        for event_id in (*entry.event_ids(accepted=False), *entry.event_ids(accepted=True)):
            yield RecordKey(kind=RecordKind.SEGMENT, subject=subject, event_id=event_id)


def _record_key(segment_id: RemoteLogSegmentId, event_id: UUID) -> RecordKey:
    subject = segment_subject(segment_id)
    return RecordKey(kind=RecordKind.SEGMENT, subject=subject, event_id=event_id.bytes)


def _segment_refusal(
    state: FoldState, parsed: ParsedSegment, before: SegmentEntry | None, append_time_ms: int
) -> Refusal | None:
    current = before.state if before else None
    wanted = parsed.state
    if wanted is _DELETE_STARTED and not _owns(state, parsed.subject, parsed.writer):
        return Refusal.NOT_OWNER
    if current not in _MAY_FOLLOW[wanted]:
        if current is None:
            return Refusal.UNKNOWN_SEGMENT
        return Refusal.STEP_BACK if current.value >= wanted.value else Refusal.SKIPPED_STATE
    if current is None and state.partition_deletion(parsed.subject[:PARTITION_SUBJECT_BYTES]):
        return Refusal.PARTITION_DELETED
    if wanted is _DELETE_STARTED and parsed.expected_state is not current:
        return Refusal.UNEXPECTED_STATE
    if wanted is _FINISHED:
        # The event repeats the deadline, so that a fold without its STARTED refuses it too.
        if 0 < parsed.copy_deadline_ms < append_time_ms:
            return Refusal.TOO_LATE
        if before and 0 < before.copy_deadline_ms < append_time_ms:
            return Refusal.TOO_LATE
    return None


def _note_refused(
    state: FoldState, subject: bytes, before: SegmentEntry | None, event_id: bytes
) -> None:
    records = with_record(before, REFUSED, event_id)
    entry = before._replace(records=records) if before else SegmentEntry(records=records)
    state.put_segment(subject, entry)


def _owns(state: FoldState, subject: bytes, writer: Writer | None) -> bool:
    return state.partition_state(subject[:PARTITION_SUBJECT_BYTES]).owner == writer
