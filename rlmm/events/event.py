"""What all events of the metadata topic have. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The value of one record of the metadata topic. Each record has its own `event_id`."""

    event_id: UUID


def parse_value(value: bytes) -> pb.MetadataEvent:
    """Parse a record's value as a message, without checking its content. Raises CorruptError."""
    try:
        return pb.MetadataEvent.FromString(value)
    except DecodeError as error:
        raise CorruptError("the record is not a metadata event", length_bytes=len(value)) from error
