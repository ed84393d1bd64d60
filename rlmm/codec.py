"""Encodes events as keys and values of the metadata topic's records, and decodes them. Pure.

Invalid records raise CorruptError. Records raise UnsupportedError if their kind, event, enum value
or `min_fold_version` needs a newer version of `rlm`. Callers skip such records.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from rlmm.events.event import Event, parse_value
from rlmm.events.registry import AnyFamily, family_of, family_of_field
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, parse_record_key
from rsm.segment.errors import CorruptError, UnsupportedError

FOLD_VERSION = 5
"""The newest version of the fold rules that this code knows.

A record that needs newer rules has a higher `min_fold_version`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecord:
    """Represents a record's key and value as bytes."""

    key: bytes
    value: bytes


def encode(event: Event) -> EncodedRecord:
    """Encode an event as a record."""
    family = family_of(event)
    return EncodedRecord(key=family.record_key(event).to_bytes(), value=family.to_value(event))


def decode(key: bytes, value: bytes) -> Event:
    """Decode a record that is not a tombstone. Raises CorruptError or UnsupportedError."""
    parsed = parse_record_key(key)
    message = parse_value(value)
    event: Event = _checked_family(parsed.kind, message).from_value(parsed, message)
    return event


def record_key(event: Event) -> bytes:
    """Return the key of an event's record."""
    return family_of(event).record_key(event).to_bytes()


def needed_fold_version(value: bytes) -> int:
    """Return the fold version that a record's value needs; 0 if the value is unreadable."""
    try:
        return pb.MetadataEvent.FromString(value).min_fold_version
    except DecodeError:
        return 0


def _checked_family(kind: RecordKind, message: pb.MetadataEvent) -> AnyFamily:
    if message.min_fold_version > FOLD_VERSION:
        raise UnsupportedError(
            "cannot decode the record: it needs newer fold rules", needs=message.min_fold_version
        )
    field = message.WhichOneof("event")
    if field is None:
        raise UnsupportedError("cannot decode the record: its event is unknown", kind=kind.name)
    family = family_of_field(field)
    if family.kind is not kind:
        raise CorruptError(
            "the record is invalid: its key does not match its value", kind=kind.name, event=field
        )
    return family
