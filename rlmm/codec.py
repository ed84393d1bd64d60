"""Encodes events as records of the metadata topic, with keys, and decodes them. Pure.

Broken records raise CorruptError. Records that only a newer version can read (by their kind, event,
enum value or `min_fold_version`) raise UnsupportedError: they are skipped, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from rlmm.events.event import Event
from rlmm.events.registry import AnyFamily, family_of, family_of_field
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, parse_record_key
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.metadata_codec import id_from_bytes

FOLD_VERSION = 5
"""The newest fold rules that this version knows; a record that needs newer ones says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecord:
    """A record's key and value as bytes."""

    key: bytes
    value: bytes


def encode(event: Event) -> EncodedRecord:
    """Encode an event as a record."""
    family = family_of(event)
    content = family.to_message(event)
    message = pb.MetadataEvent(
        min_fold_version=family.needed_fold_version(content), event_id=event.event_id.bytes
    )
    getattr(message, family.field).CopyFrom(content)
    return EncodedRecord(key=record_key(event), value=message.SerializeToString())


def decode(key: bytes, value: bytes) -> Event:
    """Decode a record that is not a tombstone. Raises CorruptError or UnsupportedError."""
    kind = parse_record_key(key).kind
    message = parse_value(value)
    family = _checked_family(kind, message)
    event_id = id_from_bytes(message.event_id)
    event: Event = family.from_message(event_id, getattr(message, family.field))
    if record_key(event) != key:
        raise CorruptError("a record's key does not match its value", kind=kind.name)
    return event


def record_key(event: Event) -> bytes:
    """Return the key that an event's record has."""
    return family_of(event).record_key(event).to_bytes()


def needed_fold_version(value: bytes) -> int:
    """Return the fold version that a record's value needs; 0 if the value is not readable."""
    try:
        return pb.MetadataEvent.FromString(value).min_fold_version
    except DecodeError:
        return 0


def parse_value(value: bytes) -> pb.MetadataEvent:
    """Parse a record's value as a message, without checking its content. CorruptError."""
    try:
        return pb.MetadataEvent.FromString(value)
    except DecodeError as error:
        raise CorruptError("the record is not a metadata event", length_bytes=len(value)) from error


def _checked_family(kind: RecordKind, message: pb.MetadataEvent) -> AnyFamily:
    if message.min_fold_version > FOLD_VERSION:
        raise UnsupportedError("the record has a newer version", needs=message.min_fold_version)
    field = message.WhichOneof("event")
    if field is None:
        raise UnsupportedError("the record's event is unknown", kind=kind.name)
    family = family_of_field(field)
    if family.kind is not kind:
        raise CorruptError("a record's key does not match its value", kind=kind.name, event=field)
    return family
