"""Encodes and decodes registrations of processes as protobuf messages. Pure."""

from __future__ import annotations

from uuid import UUID

from rlmm.events.processes import (
    AppliedPosition,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
    bounded_reasons,
)
from rlmm.proto import events_pb2 as pb
from rsm.segment.metadata_codec import enum_from_number, id_from_bytes

_READINESS = {each.value: each for each in ProcessReadiness}


def registration_to_message(event: ProcessRegistered) -> pb.ProcessRegistered:
    """Encode a registration."""
    is_readiness_known = event.readiness is not ProcessReadiness.UNKNOWN
    return pb.ProcessRegistered(
        process_id=event.process_id.bytes,
        role=event.role.name,
        broker_id=event.broker_id,
        http_address=event.http_address,
        heartbeat_interval_ms=event.heartbeat_interval_ms,
        version=event.version,
        gateway_address=event.gateway_address,
        applied=[pb.AppliedPosition(partition=a.partition, offset=a.offset) for a in event.applied],
        boot_id=event.boot_id,
        network_namespace=event.network_namespace,
        broker_address=event.broker_address,
        readiness=event.readiness.name if is_readiness_known else None,
        unready_reasons=bounded_reasons(event.unready_reasons),
        incarnation=None if event.incarnation is None else event.incarnation.bytes,
        serves_https=event.serves_https,
    )


def registration_from_message(event_id: UUID, message: pb.ProcessRegistered) -> ProcessRegistered:
    """Decode a registration of this or an older version. CorruptError, UnsupportedError.

    It drops reasons beyond the limits.
    """
    return ProcessRegistered(
        event_id=event_id,
        process_id=id_from_bytes(message.process_id),
        role=enum_from_number(ProcessRole, message.role, "process role"),
        broker_id=message.broker_id,
        http_address=message.http_address,
        heartbeat_interval_ms=message.heartbeat_interval_ms,
        version=message.version,
        gateway_address=message.gateway_address,
        applied=tuple(
            AppliedPosition(partition=a.partition, offset=a.offset) for a in message.applied
        ),
        boot_id=message.boot_id,
        network_namespace=message.network_namespace,
        broker_address=message.broker_address,
        readiness=_READINESS.get(message.readiness, ProcessReadiness.UNKNOWN),
        unready_reasons=bounded_reasons(message.unready_reasons),
        incarnation=id_from_bytes(message.incarnation) if message.incarnation else None,
        serves_https=message.serves_https,
    )
