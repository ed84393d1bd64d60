"""Defines message tables: how each field is encoded, and in which versions.

A message is a frozen dataclass whose fields are declared by `wire(...)` in the order of encoding.
The codec is compiled from these tables. This module handles no bytes.

Sources: Kafka's message schemas (the JSON resources of kafka-clients) for the tables, KIP-482 and
the protocol guide for the encodings.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID

_WIRE = "wire"
_LAST_VERSION = 0x7FFF

UnknownTags = tuple[tuple[int, bytes], ...]

# The value of a records field: record batches. Decoding returns a slice of the input buffer; do not
# resize or reuse the buffer while the slice exists. Encoding accepts several pieces as one value.
Buffer = bytes | memoryview
Records = Buffer | tuple[Buffer, ...]
NULL_ID = UUID(int=0)


class WireType(Enum):
    """Represents a primitive type; strings, bytes and records are compact in flexible versions."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UUID = "uuid"
    STRING = "string"
    HEADER_STRING = "header string"  # The header's client id is never a compact string.
    BYTES = "bytes"
    RECORDS = "records"  # The bytes of record batches are neither copied nor parsed.


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """Represents an array type with elements of one type; the values of arrays are tuples."""

    element: WireType | type[Message]


FieldType = WireType | ArrayOf | type["Message"]

_DEFAULTS: dict[WireType, object] = {
    WireType.BOOLEAN: False,
    WireType.INT8: 0,
    WireType.INT16: 0,
    WireType.INT32: 0,
    WireType.INT64: 0,
    WireType.UUID: NULL_ID,
    WireType.STRING: "",
    WireType.HEADER_STRING: "",
    WireType.BYTES: b"",
    WireType.RECORDS: b"",
}


@dataclass(frozen=True, slots=True)
class Versions:
    """Represents an inclusive range of versions; it is empty if `first` > `last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse Kafka's form: "3", "1-4", "6+" or "none". Raises ValueError for anything else."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), _LAST_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Represents a message, or a structure within one.

    `unknown_tags` are the tagged fields that no table names, ascending by tag. They are kept, so
    that decoding and encoding a message loses nothing (KIP-482).
    """

    unknown_tags: UnknownTags = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSchema:
    """Represents one row of a table; `tag` is None for an untagged field."""

    name: str
    type: FieldType
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object


@dataclass(frozen=True, slots=True)
class _Row:
    type: FieldType
    versions: Versions
    nullable: Versions
    tag: int | None


def wire(
    field_type: FieldType,
    versions: str,
    *,
    nullable: str = "none",
    tag: int | None = None,
    default: object = dataclasses.MISSING,
    secret: bool = False,
) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Declare a field of a message; versions that do not carry the field use its default.

    If `default` is not given, it is zero, false, empty, the null id, or a structure of defaults.
    A tagged field is tagged in all its versions. The value of a `secret` field never appears in
    repr.
    """
    if default is dataclasses.MISSING:
        default = _default_of(field_type)
    row = _Row(field_type, Versions.parse(versions), Versions.parse(nullable), tag)
    return dataclasses.field(default=default, repr=not secret, metadata={_WIRE: row})


def _default_of(field_type: FieldType) -> object:
    if isinstance(field_type, ArrayOf):
        return ()
    return _DEFAULTS[field_type] if isinstance(field_type, WireType) else field_type()


def fields_of(message_type: type[Message]) -> tuple[FieldSchema, ...]:
    """Return the table of a message type, in the order of encoding."""
    rows = []
    for field in dataclasses.fields(message_type):
        row = field.metadata.get(_WIRE)
        if isinstance(row, _Row):
            rows.append(
                FieldSchema(
                    name=field.name,
                    type=row.type,
                    versions=row.versions,
                    nullable=row.nullable,
                    tag=row.tag,
                    default=field.default,
                )
            )
    return tuple(rows)


RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[RequestT, ResponseT]):
    """Represents an API of the protocol: its key, the supported versions, and its two messages."""

    key: int
    name: str
    versions: Versions
    flexible: Versions
    request: type[RequestT]
    response: type[ResponseT]

    def request_header_version(self, version: int) -> int:
        """Return 2 in flexible versions, else 1 (only ControlledShutdown used 0)."""
        return 2 if version in self.flexible else 1

    def response_header_version(self, version: int) -> int:
        """Return 1 in flexible versions, else 0; always 0 for ApiVersions (KIP-511)."""
        return 1 if version in self.flexible and self.key != API_VERSIONS_KEY else 0


API_VERSIONS_KEY = 18
