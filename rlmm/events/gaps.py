"""Defines the event with which the owner records a partition's gaps. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import OwnerFamily, StateOf
from rlmm.events.fold_state import Refusal
from rlmm.positions import TopicRecord
from rlmm.proto import cache_pb2 as cache
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import PartitionState
from rsm.segment.errors import CorruptError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer
from rsm.segment.metadata_codec import (
    enum_from_number,
    partition_from_message,
    partition_to_message,
    writer_from_message,
    writer_to_message,
)
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class GapsRecorded(Event):
    """Represents all known gaps of a partition above its log start, ascending, without overlaps.

    If an action of `rlm` makes a gap, the owner publishes the event first. The last record wins.
    """

    topic_id_partition: TopicIdPartition
    writer: Writer
    gaps: tuple[RecordedGap, ...]

    def __post_init__(self) -> None:
        if any(a.offsets.end_offset > b.offsets.start_offset for a, b in pairwise(self.gaps)):
            raise ValueError(f"gaps must ascend without overlaps: {self.gaps}")


class GapsFamily(OwnerFamily[GapsRecorded, pb.GapsRecorded]):
    """Defines the family of gaps; each record replaces the gaps of the previous record."""

    event_type = GapsRecorded
    kind = RecordKind.GAPS
    field = "gaps_recorded"
    min_fold_version = 2

    def to_message(self, event: GapsRecorded) -> pb.GapsRecorded:
        return pb.GapsRecorded(
            topic_id_partition=partition_to_message(event.topic_id_partition),
            writer=writer_to_message(event.writer),
            gaps=map(_gap_to_message, event.gaps),
        )

    def from_message(self, event_id: UUID, message: pb.GapsRecorded) -> GapsRecorded:
        try:
            return GapsRecorded(
                event_id=event_id,
                topic_id_partition=partition_from_message(message.topic_id_partition),
                writer=writer_from_message(message.writer),
                gaps=_gaps_of(message.gaps),
            )
        except ValueError as error:
            raise CorruptError("cannot read the gaps of a partition", reason=str(error)) from error

    def rule(
        self, before: PartitionState, event: GapsRecorded, record: TopicRecord
    ) -> PartitionState | Refusal:
        return replace(before, recorded_gaps=event.gaps, gaps_epoch=event.writer.leader_epoch)

    def save(self, state: PartitionState, message: cache.PartitionState) -> None:
        message.gaps.extend(map(_gap_to_message, state.recorded_gaps))
        if state.gaps_epoch != -1:
            message.gaps_epoch = state.gaps_epoch

    def load(self, message: cache.PartitionState, fields: dict[str, Any]) -> None:
        if message.gaps:
            fields["recorded_gaps"] = _gaps_of(message.gaps)
        if message.HasField("gaps_epoch"):
            fields["gaps_epoch"] = message.gaps_epoch

    def superseded_kinds(
        self, event: GapsRecorded, state_of: StateOf
    ) -> tuple[RecordKind, ...] | None:
        return (RecordKind.GAPS,)


def _gaps_of(messages: Iterable[pb.RecordedGap]) -> tuple[RecordedGap, ...]:
    return tuple(map(_gap_from_message, messages))


def _gap_to_message(gap: RecordedGap) -> pb.RecordedGap:
    """Encode a gap; encode ACCEPTED_LOSS as EXTERNAL_START with a separate field.

    Version 0.1.0 cannot read a third reason. Its gateways ignore the field, and its managers keep
    it.
    """
    is_accepted_loss = gap.reason is GapReason.ACCEPTED_LOSS
    message = pb.RecordedGap(
        start_offset=gap.offsets.start_offset,
        end_offset=gap.offsets.end_offset,
        reason=GapReason.EXTERNAL_START.name if is_accepted_loss else gap.reason.name,
        recorded_ms=gap.recorded_ms,
        accepted_loss=is_accepted_loss,
    )
    restore_unknown_fields(message, gap.unknown_fields)
    return message


def _gap_from_message(message: pb.RecordedGap) -> RecordedGap:
    reason = enum_from_number(GapReason, message.reason, "reason of a gap")
    if message.accepted_loss:
        reason = GapReason.ACCEPTED_LOSS
    try:
        offsets = OffsetRange(start_offset=message.start_offset, end_offset=message.end_offset)
        return RecordedGap(
            offsets=offsets,
            reason=reason,
            recorded_ms=message.recorded_ms,
            unknown_fields=unknown_fields(message),
        )
    except ValueError as error:
        raise CorruptError("cannot read a gap", reason=str(error)) from error
