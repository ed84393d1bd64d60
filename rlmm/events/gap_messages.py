"""Encodes and decodes recorded gaps, offload requests and accepted losses (protobuf). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from rlmm.events.values import GapReason, GapsRecorded, LossAccepted, OffloadRequested, RecordedGap
from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError
from rsm.segment.metadata_codec import (
    enum_from_number,
    partition_from_message,
    partition_to_message,
    writer_from_message,
    writer_to_message,
)
from rsm.segment.ranges import OffsetRange
from rsm.segment.unknown_fields import restore_unknown_fields, unknown_fields


def gap_messages(gaps: Iterable[RecordedGap]) -> list[pb.RecordedGap]:
    """Encode gaps."""
    return list(map(_gap_to_message, gaps))


def gaps_of(messages: Iterable[pb.RecordedGap]) -> tuple[RecordedGap, ...]:
    """Decode gaps. CorruptError, UnsupportedError."""
    return tuple(map(_gap_from_message, messages))


def gaps_to_message(event: GapsRecorded) -> pb.GapsRecorded:
    """Encode the gaps of a partition."""
    return pb.GapsRecorded(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        writer=writer_to_message(event.writer),
        gaps=gap_messages(event.gaps),
    )


def gaps_from_message(event_id: UUID, message: pb.GapsRecorded) -> GapsRecorded:
    """Decode the gaps of a partition. CorruptError, UnsupportedError."""
    try:
        return GapsRecorded(
            event_id=event_id,
            topic_id_partition=partition_from_message(message.topic_id_partition),
            writer=writer_from_message(message.writer),
            gaps=gaps_of(message.gaps),
        )
    except ValueError as error:
        raise CorruptError("not the gaps of a partition", reason=str(error)) from error


def offload_to_message(event: OffloadRequested) -> pb.OffloadRequested:
    """Encode an offload request."""
    return pb.OffloadRequested(
        topic_id_partition=partition_to_message(event.topic_id_partition), offset=event.offset
    )


def offload_from_message(event_id: UUID, message: pb.OffloadRequested) -> OffloadRequested:
    """Decode an offload request. CorruptError."""
    if message.offset < 0:
        raise CorruptError("a negative offset", offset=message.offset)
    return OffloadRequested(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        offset=message.offset,
    )


def loss_to_message(event: LossAccepted) -> pb.LossAccepted:
    """Encode an accepted loss."""
    return pb.LossAccepted(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        leader_epoch=event.leader_epoch,
        local_start_offset=event.local_start_offset,
    )


def loss_from_message(event_id: UUID, message: pb.LossAccepted) -> LossAccepted:
    """Decode an accepted loss. CorruptError."""
    if message.leader_epoch < -1 or message.local_start_offset < 0:
        raise CorruptError(
            "not a loss", epoch=message.leader_epoch, offset=message.local_start_offset
        )
    return LossAccepted(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        leader_epoch=message.leader_epoch,
        local_start_offset=message.local_start_offset,
    )


def _gap_to_message(gap: RecordedGap) -> pb.RecordedGap:
    """Encode a gap, with ACCEPTED_LOSS as a separate field that version 0.1.0 ignores.

    Version 0.1.0 cannot read a third reason. Its gateways skip the gap; its leaders keep the field.
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
        raise CorruptError("not a gap", reason=str(error)) from error
