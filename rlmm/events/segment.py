"""The next state of a segment, and the dead letter of one. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import EventFamily
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.segment_fold import erase_segment, fold_dead_lettered, fold_segment
from rlmm.events.segment_step import SegmentStep
from rlmm.positions import TopicRecord
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind, segment_subject
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.metadata_codec import (
    id_from_bytes,
    metadata_from_message,
    metadata_to_message,
    partition_from_message,
    partition_to_message,
    state_from_number,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEvent(Event):
    """A segment's next state, with its whole metadata.

    `expected_state`: for DELETE_SEGMENT_STARTED, the state that it was decided on (None: nothing
    known). `copy_deadline_ms`: for COPY_SEGMENT_FINISHED, the LogAppendTime after which it is too
    late. It is 0 for COPY_SEGMENT_STARTED, and without a deadline (a catalogue that was rebuilt
    from the store). `copy_timeout_ms`: for COPY_SEGMENT_STARTED, the limit of this attempt.
    """

    metadata: RemoteLogSegmentMetadata
    expected_state: SegmentState | None = None
    copy_timeout_ms: int = 0
    copy_deadline_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDeadLettered(Event):
    """A segment whose deletion failed too often, so that it has a dead letter.

    The segment stays in DELETE_SEGMENT_STARTED. From now on, only a repair job or an operator
    retries.
    """

    segment_id: RemoteLogSegmentId
    attempts: int


class SegmentFamily(EventFamily[SegmentEvent, pb.SegmentEvent, SegmentStep]):
    """Segment events. Nearly all records are of them, so the fold reads only a part of each."""

    event_type = SegmentEvent
    kind = RecordKind.SEGMENT
    field = "segment"

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
            raise CorruptError("a negative time of a copy")
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

    def fold(self, state: FoldState, step: SegmentStep, record: TopicRecord) -> Refusal | None:
        return fold_segment(state, step, record)

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        erase_segment(state, key)
        return None


class DeadLetteredFamily(
    EventFamily[SegmentDeadLettered, pb.SegmentDeadLettered, SegmentDeadLettered]
):
    """Dead letters of segments; their keys are those of segment events."""

    event_type = SegmentDeadLettered
    kind = RecordKind.SEGMENT
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
        self, state: FoldState, step: SegmentDeadLettered, record: TopicRecord
    ) -> Refusal | None:
        return fold_dead_lettered(state, self.record_key(step))

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        erase_segment(state, key)
        return None


def _record_key(segment_id: RemoteLogSegmentId, event_id: UUID) -> RecordKey:
    subject = segment_subject(segment_id)
    return RecordKey(kind=RecordKind.SEGMENT, subject=subject, event_id=event_id.bytes)
