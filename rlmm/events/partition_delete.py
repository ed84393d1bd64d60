"""Defines the event of deleting all stored data of a partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import PARTITION_DELETED, EventFamily
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.positions import TopicRecord
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind, partition_subject
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata_codec import (
    enum_from_number,
    partition_from_message,
    partition_to_message,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadata(Event):
    """Represents the next state of deleting a topic-id-partition's stored data (KIP-405).

    Any process may write it, because a deleted topic has no leader. Each state is accepted once, in
    order. After MARKED, no copy begins. Write FINISHED only when nothing is stored. The fold
    refuses its tombstone.
    """

    topic_id_partition: TopicIdPartition
    state: RemotePartitionDeleteState
    event_timestamp_ms: int
    broker_id: int


class PartitionDeleteFamily(
    EventFamily[
        RemotePartitionDeleteMetadata,
        pb.RemotePartitionDeleteMetadata,
        RemotePartitionDeleteMetadata,
    ]
):
    """Defines the family of deletion states; FINISHED erases the partition's other state."""

    event_type = RemotePartitionDeleteMetadata
    kind = RecordKind.PARTITION_DELETE
    field = "partition_delete"

    def to_message(self, event: RemotePartitionDeleteMetadata) -> pb.RemotePartitionDeleteMetadata:
        return pb.RemotePartitionDeleteMetadata(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            state=event.state.name,
            event_timestamp_ms=event.event_timestamp_ms,
            broker_id=event.broker_id,
        )

    def from_message(
        self, event_id: UUID, message: pb.RemotePartitionDeleteMetadata
    ) -> RemotePartitionDeleteMetadata:
        state = enum_from_number(RemotePartitionDeleteState, message.state, "state of a deletion")
        return RemotePartitionDeleteMetadata(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            state=state,
            event_timestamp_ms=message.event_timestamp_ms,
            broker_id=message.broker_id,
        )

    def record_key(self, event: RemotePartitionDeleteMetadata) -> RecordKey:
        subject = partition_subject(event.topic_id_partition)
        return RecordKey(kind=self.kind, subject=subject, event_id=event.event_id.bytes)

    def partition_of(self, event: RemotePartitionDeleteMetadata) -> TopicIdPartition | None:
        return event.topic_id_partition

    def topic_of(self, event: RemotePartitionDeleteMetadata) -> str | None:
        return event.topic_id_partition.topic

    def fold(
        self, state: FoldState, parsed: RemotePartitionDeleteMetadata, record: TopicRecord
    ) -> Refusal | None:
        subject = partition_subject(parsed.topic_id_partition)
        before = state.partition_deletion(subject)
        reached = 0 if before is None else before.value
        if parsed.state.value != reached + 1:
            return Refusal.STEP_BACK if parsed.state.value <= reached else Refusal.SKIPPED_STATE
        state.put_partition_deletion(subject, parsed.state)
        if parsed.state is PARTITION_DELETED:
            state.put_partition(subject, PartitionState())
        return None

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """Refuse the removal: only these records make the fold refuse late copies."""
        return Refusal.PARTITION_DELETE_REMOVED
