"""Defines the request to copy a partition's rolled segments now. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import PartitionFamily, StateOf, checked_offset
from rlmm.events.fold_state import Refusal
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata_codec import partition_from_message, partition_to_message


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequested(Event):
    """Represents a request to copy all rolled segments below `offset`, regardless of copy lags.

    Any process may write it, without fencing: the highest request counts.
    """

    topic_id_partition: TopicIdPartition
    offset: int


class OffloadRequestFamily(PartitionFamily[OffloadRequested, pb.OffloadRequested]):
    """Defines the family of offload requests; refuses one below an earlier request."""

    event_type = OffloadRequested
    kind = RecordKind.OFFLOAD_REQUEST
    field = "offload_requested"
    min_fold_version = 2

    def to_message(self, event: OffloadRequested) -> pb.OffloadRequested:
        return pb.OffloadRequested(
            topic_id_partition=partition_to_message(event.topic_id_partition), offset=event.offset
        )

    def from_message(self, event_id: UUID, message: pb.OffloadRequested) -> OffloadRequested:
        return OffloadRequested(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            offset=checked_offset(message.offset),
        )

    def rule(
        self, before: PartitionState, event: OffloadRequested, record: TopicRecord
    ) -> PartitionState | Refusal:
        current = before.offload_requested_offset
        if current is not None and event.offset < current:
            return Refusal.BELOW_CURRENT
        return replace(before, offload_requested_offset=event.offset)

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        if state.offload_requested_offset is not None:
            message.offload_requested_offset = state.offload_requested_offset

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.HasField("offload_requested_offset"):
            fields["offload_requested_offset"] = message.offload_requested_offset

    def superseded_kinds(
        self, event: OffloadRequested, state_of: StateOf
    ) -> tuple[RecordKind, ...] | None:
        return (RecordKind.OFFLOAD_REQUEST,)
