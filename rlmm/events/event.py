"""Defines what all events of the metadata topic have in common. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Represents the value of one record of the metadata topic; `event_id` is unique."""

    event_id: UUID


def parse_value(value: bytes) -> pb.MetadataEvent:
    """Parse a record's value as a message; do not check the content. Raises CorruptError."""
    try:
        return pb.MetadataEvent.FromString(value)
    except DecodeError as error:
        raise CorruptError(
            "cannot read a metadata record: the value is not a MetadataEvent",
            length_bytes=len(value),
        ) from error
