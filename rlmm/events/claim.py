"""Defines the event of a leader's claim of a partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import PARTITION_DELETED, PartitionFamily
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer
from rsm.segment.metadata_codec import (
    lineage_from_messages,
    lineage_to_messages,
    partition_from_message,
    partition_to_message,
    writer_from_message,
    writer_to_message,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipClaimed(Event):
    """Represents a leader's claim of a partition, with the whole lineage.

    The fold accepts its tombstone only after the partition's deletion has finished.
    """

    topic_id_partition: TopicIdPartition
    writer: Writer
    lineage: Lineage


class ClaimFamily(PartitionFamily[LeadershipClaimed, pb.LeadershipClaimed]):
    """Defines the family of claims: the last claim of the highest epoch owns the partition."""

    event_type = LeadershipClaimed
    kind = RecordKind.CLAIM
    field = "leadership_claimed"

    def to_message(self, event: LeadershipClaimed) -> pb.LeadershipClaimed:
        return pb.LeadershipClaimed(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            writer=writer_to_message(event.writer),
            lineage=lineage_to_messages(event.lineage),
        )

    def from_message(self, event_id: UUID, message: pb.LeadershipClaimed) -> LeadershipClaimed:
        return LeadershipClaimed(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            writer=writer_from_message(message.writer),
            lineage=lineage_from_messages(list(message.lineage)),
        )

    def rule(
        self, before: PartitionState, event: LeadershipClaimed, record: TopicRecord
    ) -> PartitionState | Refusal:
        if before.owner and event.writer.leader_epoch < before.owner.leader_epoch:
            return Refusal.STALE_EPOCH
        return replace(before, owner=event.writer, lineage=event.lineage)

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        if state.owner is not None:
            message.owner.CopyFrom(writer_to_message(state.owner))
        message.lineage.extend(lineage_to_messages(state.lineage))

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.HasField("owner"):
            fields["owner"] = writer_from_message(message.owner)
        if message.lineage:
            fields["lineage"] = lineage_from_messages(list(message.lineage))

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        """Refuse the removal until the partition's deletion has finished."""
        if state.partition_deletion(key.subject) is not PARTITION_DELETED:
            return Refusal.CLAIM_REMOVED
        return super().fold_tombstone(state, key)
