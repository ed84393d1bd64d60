"""Defines the event with which an operator accepts a partition's losses. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import PartitionFamily
from rlmm.events.fold_state import Refusal
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.errors import CorruptError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata_codec import partition_from_message, partition_to_message


@dataclass(frozen=True, slots=True, kw_only=True)
class LossAccepted(Event):
    """Represents an operator's acceptance of losses, so that the manager can continue.

    The acceptance covers the records of leader epochs up to `leader_epoch` that an election cut off
    (-1: no records). It also accepts `local_start_offset` as the local start although `rlm` did not
    move it. Any process may write the event, without fencing: the highest value of each field
    counts. No process removes it while the partition exists.
    """

    topic_id_partition: TopicIdPartition
    leader_epoch: int
    local_start_offset: int


class AcceptedLossFamily(PartitionFamily[LossAccepted, pb.LossAccepted]):
    """Defines the family of accepted losses; the highest value of each field counts."""

    event_type = LossAccepted
    kind = RecordKind.LOSS_ACCEPTED
    field = "loss_accepted"
    min_fold_version = 2

    def to_message(self, event: LossAccepted) -> pb.LossAccepted:
        return pb.LossAccepted(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            leader_epoch=event.leader_epoch,
            local_start_offset=event.local_start_offset,
        )

    def from_message(self, event_id: UUID, message: pb.LossAccepted) -> LossAccepted:
        if message.leader_epoch < -1 or message.local_start_offset < 0:
            raise CorruptError(
                "cannot read an accepted loss: its epoch is below -1, or its offset is negative",
                epoch=message.leader_epoch,
                offset=message.local_start_offset,
            )
        return LossAccepted(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            leader_epoch=message.leader_epoch,
            local_start_offset=message.local_start_offset,
        )

    def rule(
        self, before: PartitionState, event: LossAccepted, record: TopicRecord
    ) -> PartitionState | Refusal:
        after = replace(
            before,
            accepted_loss_epoch=max(before.accepted_loss_epoch, event.leader_epoch),
            accepted_start_offset=max(before.accepted_start_offset, event.local_start_offset),
        )
        return Refusal.BELOW_CURRENT if after == before else after

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        if state.accepted_loss_epoch != -1:
            message.accepted_loss_epoch = state.accepted_loss_epoch
        if state.accepted_start_offset:
            message.accepted_start_offset = state.accepted_start_offset

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.HasField("accepted_loss_epoch"):
            fields["accepted_loss_epoch"] = message.accepted_loss_epoch
        fields["accepted_start_offset"] = message.accepted_start_offset
