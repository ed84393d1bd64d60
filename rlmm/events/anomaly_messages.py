"""Encodes and decodes anomalies of stored objects as protobuf messages. Pure."""

from __future__ import annotations

from uuid import UUID

from rlmm.events.anomaly import Anomaly, AnomalyKind, AnomalyReported
from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError
from rsm.segment.metadata_codec import (
    enum_from_number,
    id_from_bytes,
    partition_from_message,
    partition_to_message,
)
from rsm.segment.ranges import OffsetRange


def reported_to_message(event: AnomalyReported) -> pb.AnomalyReported:
    """Encode a report."""
    return pb.AnomalyReported(
        topic_id_partition=partition_to_message(event.topic_id_partition),
        anomaly=anomaly_to_message(event.anomaly),
    )


def reported_from_message(event_id: UUID, message: pb.AnomalyReported) -> AnomalyReported:
    """Decode a report. CorruptError, UnsupportedError."""
    return AnomalyReported(
        event_id=event_id,
        topic_id_partition=partition_from_message(message.topic_id_partition),
        anomaly=anomaly_from_message(message.anomaly),
    )


def anomaly_to_message(anomaly: Anomaly) -> pb.Anomaly:
    """Encode an anomaly."""
    return pb.Anomaly(
        segment_id=anomaly.segment.bytes,
        object_key=anomaly.object_key,
        kind=anomaly.kind.name,
        first_ms=anomaly.first_ms,
        last_ms=anomaly.last_ms,
        attempts=anomaly.attempts,
        lost=[
            pb.LostOffsets(start_offset=each.start_offset, end_offset=each.end_offset)
            for each in anomaly.lost
        ],
    )


def anomaly_from_message(message: pb.Anomaly) -> Anomaly:
    """Decode an anomaly. CorruptError, UnsupportedError."""
    kind = enum_from_number(AnomalyKind, message.kind, "kind of an anomaly")
    try:
        return Anomaly(
            segment=id_from_bytes(message.segment_id),
            object_key=message.object_key,
            kind=kind,
            first_ms=message.first_ms,
            last_ms=message.last_ms,
            attempts=message.attempts,
            lost=tuple(
                OffsetRange(start_offset=each.start_offset, end_offset=each.end_offset)
                for each in message.lost
            ),
        )
    except ValueError as error:
        raise CorruptError("cannot read an anomaly", reason=str(error)) from error
