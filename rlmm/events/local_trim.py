"""Defines the event of the owner's trim of the local log. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import OwnerFamily, StateOf, checked_offset
from rlmm.events.fold_state import Refusal
from rlmm.events.log_start import starts_of, starts_to_messages
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rlmm.state.log_starts import LogStart, uncovered
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
class LocalLogTrimmed(Event):
    """Represents a trim of the local log up to `offset`; published before the trim."""

    topic_id_partition: TopicIdPartition
    writer: Writer
    offset: int
    lineage: Lineage


class LocalTrimFamily(OwnerFamily[LocalLogTrimmed, pb.LocalLogTrimmed]):
    """Defines the family of trims; refuses one that another known trim covers."""

    event_type = LocalLogTrimmed
    kind = RecordKind.TRIM
    field = "local_log_trimmed"

    def to_message(self, event: LocalLogTrimmed) -> pb.LocalLogTrimmed:
        return pb.LocalLogTrimmed(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            writer=writer_to_message(event.writer),
            offset=event.offset,
            lineage=lineage_to_messages(event.lineage),
        )

    def from_message(self, event_id: UUID, message: pb.LocalLogTrimmed) -> LocalLogTrimmed:
        return LocalLogTrimmed(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            writer=writer_from_message(message.writer),
            offset=checked_offset(message.offset),
            lineage=lineage_from_messages(list(message.lineage)),
        )

    def rule(
        self, before: PartitionState, event: LocalLogTrimmed, record: TopicRecord
    ) -> PartitionState | Refusal:
        trim = _log_start(event)
        if any(each != trim and each.covers(trim) for each in before.trims):
            return Refusal.BELOW_CURRENT
        trims = uncovered((*before.trims, trim))
        return replace(before, trims=trims, lineage=event.lineage)

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        message.trims.extend(starts_to_messages(state.trims))

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.trims:
            fields["trims"] = starts_of(message.trims)

    def superseded_kinds(
        self, event: LocalLogTrimmed, state_of: StateOf
    ) -> tuple[RecordKind, ...] | None:
        is_only_trim = state_of(event.topic_id_partition).trims == (_log_start(event),)
        return (RecordKind.TRIM,) if is_only_trim else ()


def _log_start(event: LocalLogTrimmed) -> LogStart:
    return LogStart(event.offset, event.writer.leader_epoch)
