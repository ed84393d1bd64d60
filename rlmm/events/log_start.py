"""Defines the events of a partition's log start: owners' decisions, clients' requests. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import OwnerFamily, PartitionFamily, StateOf, checked_offset
from rlmm.events.fold_state import Refusal
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rlmm.state.log_starts import LogStart, uncovered
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer
from rsm.segment.metadata_codec import (
    partition_from_message,
    partition_to_message,
    writer_from_message,
    writer_to_message,
)

_FIRST_EPOCH = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartAdvanced(Event):
    """Represents a new log start; the owner publishes it before it deletes anything below."""

    topic_id_partition: TopicIdPartition
    writer: Writer
    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartRequested(Event):
    """Represents a client's deletion of the records below `offset`, which a broker accepted.

    Any process may write it, without fencing: the highest request counts, and brokers accept none
    above the high watermark. The leader's manager makes `offset` the log start. `leader_epoch` is
    the epoch of the broker that accepted the request; -1 means the epoch of the owner when the
    record is folded. If a later epoch begins below `offset`, the log start moves only to the
    beginning of that epoch.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    leader_epoch: int = -1


class LogStartFamily(OwnerFamily[LogStartAdvanced, pb.LogStartAdvanced]):
    """Defines the family of log starts; refuses one that another known log start covers."""

    event_type = LogStartAdvanced
    kind = RecordKind.LOG_START
    field = "log_start_advanced"

    def to_message(self, event: LogStartAdvanced) -> pb.LogStartAdvanced:
        return pb.LogStartAdvanced(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            writer=writer_to_message(event.writer),
            offset=event.offset,
            reason=event.reason,
        )

    def from_message(self, event_id: UUID, message: pb.LogStartAdvanced) -> LogStartAdvanced:
        return LogStartAdvanced(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            writer=writer_from_message(message.writer),
            offset=checked_offset(message.offset),
            reason=message.reason,
        )

    def rule(
        self, before: PartitionState, event: LogStartAdvanced, record: TopicRecord
    ) -> PartitionState | Refusal:
        start = _log_start(event)
        if any(each != start and each.covers(start) for each in before.log_starts):
            return Refusal.BELOW_CURRENT
        return _with_starts(before, (*before.log_starts, start), before.log_start_requests)

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        message.log_starts.extend(starts_to_messages(state.log_starts))

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.log_starts:
            fields["log_starts"] = starts_of(message.log_starts)

    def superseded_kinds(
        self, event: LogStartAdvanced, state_of: StateOf
    ) -> tuple[RecordKind, ...] | None:
        state = state_of(event.topic_id_partition)
        starts = (RecordKind.LOG_START,) if state.log_starts == (_log_start(event),) else ()
        if state.log_start_requests:
            return starts
        return (*starts, RecordKind.LOG_START_REQUEST)  # All requests so far are met.


class LogStartRequestFamily(PartitionFamily[LogStartRequested, pb.LogStartRequested]):
    """Defines the family of requests; refuses one that a log start or another request covers."""

    event_type = LogStartRequested
    kind = RecordKind.LOG_START_REQUEST
    field = "log_start_requested"

    def to_message(self, event: LogStartRequested) -> pb.LogStartRequested:
        return pb.LogStartRequested(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            offset=event.offset,
            leader_epoch=None if event.leader_epoch < 0 else event.leader_epoch,
        )

    def from_message(self, event_id: UUID, message: pb.LogStartRequested) -> LogStartRequested:
        return LogStartRequested(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            offset=checked_offset(message.offset),
            leader_epoch=max(message.leader_epoch, -1) if message.HasField("leader_epoch") else -1,
        )

    def rule(
        self, before: PartitionState, event: LogStartRequested, record: TopicRecord
    ) -> PartitionState | Refusal:
        epoch = event.leader_epoch
        if epoch < 0:
            epoch = before.owner.leader_epoch if before.owner else _FIRST_EPOCH
        request = LogStart(event.offset, epoch)
        if before.has_covered(request):
            return Refusal.BELOW_CURRENT
        return _with_starts(before, before.log_starts, (*before.log_start_requests, request))

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        message.log_start_requests.extend(starts_to_messages(state.log_start_requests))

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.log_start_requests:
            fields["log_start_requests"] = starts_of(message.log_start_requests)


def starts_to_messages(starts: Iterable[LogStart]) -> list[cache.LogStart]:
    """Encode log starts for the cache."""
    return [cache.LogStart(offset=each.offset, leader_epoch=each.leader_epoch) for each in starts]


def starts_of(messages: Iterable[cache.LogStart]) -> tuple[LogStart, ...]:
    """Decode log starts from the cache."""
    return tuple(LogStart(each.offset, each.leader_epoch) for each in messages)


def _log_start(event: LogStartAdvanced) -> LogStart:
    return LogStart(event.offset, event.writer.leader_epoch)


def _with_starts(
    state: PartitionState, starts: Iterable[LogStart], requests: Iterable[LogStart]
) -> PartitionState:
    kept = uncovered(starts)
    return replace(state, log_starts=kept, log_start_requests=uncovered(requests, kept))
