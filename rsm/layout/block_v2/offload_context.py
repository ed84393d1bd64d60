"""Converts offload contexts, which locate a ledger's data in the store, to and from protobuf. Pure.

A ledger that was offloaded as a whole (PIP-17) has a UUID and no segments. A streamed ledger
(PIP-76) is in one or more offload segments, each with its own data object. OffloadContext keeps all
fields of a message, so a decoded message encodes to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from rsm.layout.blocks.ledger_metadata import bytes_of, text_of
from rsm.layout.proto import managed_ledger_pb2 as pb
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields

_HALF_BITS = 64
_HALF = (1 << _HALF_BITS) - 1
_SIGN = 1 << (_HALF_BITS - 1)

Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadDriver:
    """Represents the store of the data: its name, and its properties such as the bucket."""

    name: str | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSegment:
    """Represents one streamed object with entries of the ledger up to `last_entry_id`.

    If `is_complete` is false, the object may not exist yet, and readers ignore it. A field is None
    if the message lacks it.
    """

    uuid: UUID | None
    last_entry_id: int | None = None
    is_complete: bool | None = None
    is_bookkeeper_deleted: bool | None = None
    assigned_ms: int | None = None
    offloaded_ms: int | None = None
    driver: OffloadDriver | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadContext:
    """Represents the offload of one ledger.

    `segments` are in the order of the entries. If there are none, `uuid` is in the names of
    PIP-17's two objects. A field is None if the message lacks it.
    """

    uuid: UUID | None = None
    segments: tuple[OffloadSegment, ...] = ()
    is_complete: bool | None = None
    is_bookkeeper_deleted: bool | None = None
    timestamp_ms: int | None = None
    driver: OffloadDriver | None = None
    unknown_fields: bytes = b""


def context_to_message(context: OffloadContext) -> pb.OffloadContext:
    """Convert a context to a protobuf message."""
    msb, lsb = _halves(context.uuid)
    message = pb.OffloadContext(
        uid_msb=msb,
        uid_lsb=lsb,
        complete=context.is_complete,
        bookkeeper_deleted=context.is_bookkeeper_deleted,
        timestamp=context.timestamp_ms,
        driver_metadata=_driver_to_message(context.driver),
        offload_segment=map(_segment_to_message, context.segments),
    )
    restore_unknown_fields(message, context.unknown_fields)
    return message


def context_from_message(message: pb.OffloadContext) -> OffloadContext:
    """Convert a protobuf message to a context."""
    return OffloadContext(
        uuid=_uuid_of(message),
        segments=tuple(map(_segment_from_message, message.offload_segment)),
        is_complete=message.complete if message.HasField("complete") else None,
        is_bookkeeper_deleted=_bookkeeper_deleted(message),
        timestamp_ms=message.timestamp if message.HasField("timestamp") else None,
        driver=_driver_of(message),
        unknown_fields=unknown_fields(message),
    )


def properties_to_messages(properties: Properties) -> list[pb.OffloadProperty]:
    """Convert properties to protobuf messages."""
    return [
        pb.OffloadProperty(key=bytes_of(key), value=bytes_of(value)) for key, value in properties
    ]


def properties_from_messages(messages: Iterable[pb.OffloadProperty]) -> Properties:
    """Convert protobuf messages to properties."""
    return tuple((text_of(each.key), text_of(each.value)) for each in messages)


def _segment_to_message(segment: OffloadSegment) -> pb.OffloadSegment:
    msb, lsb = _halves(segment.uuid)
    return pb.OffloadSegment(
        uid_msb=msb,
        uid_lsb=lsb,
        complete=segment.is_complete,
        bookkeeper_deleted=segment.is_bookkeeper_deleted,
        assigned_timestamp=segment.assigned_ms,
        offloaded_timestamp=segment.offloaded_ms,
        end_entry_id=segment.last_entry_id,
        driver_metadata=_driver_to_message(segment.driver),
    )


def _segment_from_message(message: pb.OffloadSegment) -> OffloadSegment:
    return OffloadSegment(
        uuid=_uuid_of(message),
        last_entry_id=message.end_entry_id if message.HasField("end_entry_id") else None,
        is_complete=message.complete if message.HasField("complete") else None,
        is_bookkeeper_deleted=_bookkeeper_deleted(message),
        assigned_ms=message.assigned_timestamp if message.HasField("assigned_timestamp") else None,
        offloaded_ms=(
            message.offloaded_timestamp if message.HasField("offloaded_timestamp") else None
        ),
        driver=_driver_of(message),
    )


def _driver_to_message(driver: OffloadDriver | None) -> pb.OffloadDriverMetadata | None:
    if driver is None:
        return None
    return pb.OffloadDriverMetadata(
        name=None if driver.name is None else bytes_of(driver.name),
        property=properties_to_messages(driver.properties),
    )


def _driver_of(message: pb.OffloadContext | pb.OffloadSegment) -> OffloadDriver | None:
    if not message.HasField("driver_metadata"):
        return None
    driver = message.driver_metadata
    return OffloadDriver(
        name=text_of(driver.name) if driver.HasField("name") else None,
        properties=properties_from_messages(driver.property),
    )


def _bookkeeper_deleted(message: pb.OffloadContext | pb.OffloadSegment) -> bool | None:
    return message.bookkeeper_deleted if message.HasField("bookkeeper_deleted") else None


def _halves(uuid: UUID | None) -> tuple[int | None, int | None]:
    if uuid is None:
        return None, None
    return _signed(uuid.int >> _HALF_BITS), _signed(uuid.int & _HALF)


def _signed(half: int) -> int:
    return half - (_SIGN << 1) if half & _SIGN else half


def _uuid_of(message: pb.OffloadContext | pb.OffloadSegment) -> UUID | None:
    if not (message.HasField("uid_msb") and message.HasField("uid_lsb")):
        return None
    return UUID(int=(message.uid_msb & _HALF) << _HALF_BITS | message.uid_lsb & _HALF)
