"""Plans one version of a message; the decoder and the encoder are compiled from the plan.

Adjacent numbers and booleans form one entry of `steps`, because one struct call handles them all.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import groupby

from rlm.wire.schema import ArrayOf, FieldSchema, FieldType, Message, WireType, fields_of

STRUCT_CODES = {
    WireType.BOOLEAN: "?",
    WireType.INT8: "b",
    WireType.INT16: "h",
    WireType.INT32: "i",
    WireType.INT64: "q",
}
# The names of these types' readers and writers have these endings; STRING uses "string".
KINDS = {
    WireType.BYTES: "bytes",
    WireType.RECORDS: "records",
    WireType.HEADER_STRING: "header_string",
}
_UUID_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """Represents a field as one version encodes it."""

    name: str
    type: FieldType
    nullable: bool
    tag: int | None
    default: object

    @property
    def struct_code(self) -> str | None:
        """Return the struct format character of a number or boolean; None for other types."""
        return STRUCT_CODES.get(self.type) if isinstance(self.type, WireType) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlan:
    """Represents one version of a message.

    `steps` are the untagged fields in the order of encoding: an entry is a run of numbers and
    booleans, or one other field. `tagged` are the tagged fields, ascending by tag. `absent` are the
    fields that this version does not carry.
    """

    message_type: type[Message]
    version: int
    flexible: bool
    steps: tuple[tuple[FieldPlan, ...], ...]
    tagged: tuple[FieldPlan, ...]
    absent: tuple[FieldSchema, ...]


def plan(message_type: type[Message], version: int, *, flexible: bool) -> MessagePlan:
    """Plan one version of a message."""
    present, absent = [], []
    for field in fields_of(message_type):
        if version in field.versions:
            present.append(_planned(field, version))
        else:
            absent.append(field)
    untagged = [field for field in present if field.tag is None]
    tagged = [field for field in present if field.tag is not None]
    return MessagePlan(
        message_type=message_type,
        version=version,
        flexible=flexible,
        steps=tuple(_steps(untagged)),
        tagged=tuple(sorted(tagged, key=lambda field: field.tag or 0)),
        absent=tuple(absent),
    )


def smallest_bytes(field_type: FieldType, *, flexible: bool) -> int:
    """Return the minimum size of a value of this type, to check an array's count."""
    if isinstance(field_type, ArrayOf):
        return 1 if flexible else 4
    if field_type in STRUCT_CODES:
        return struct.calcsize(">" + STRUCT_CODES[field_type])
    if field_type is WireType.UUID:
        return _UUID_BYTES
    if isinstance(field_type, type):
        return 1  # Any structure has at least one byte; reading it checks the rest.
    if flexible and field_type is not WireType.HEADER_STRING:
        return 1
    return 4 if field_type in (WireType.BYTES, WireType.RECORDS) else 2


def smallest_message_bytes(message_type: type[Message], version: int, *, flexible: bool) -> int:
    """Return the minimum size of a structure, to check an array's count."""
    planned = plan(message_type, version, flexible=flexible)
    fixed = sum(
        smallest_bytes(field.type, flexible=flexible) for step in planned.steps for field in step
    )
    return max(1, fixed + int(flexible))


def _planned(field: FieldSchema, version: int) -> FieldPlan:
    return FieldPlan(
        name=field.name,
        type=field.type,
        nullable=version in field.nullable,
        tag=field.tag,
        default=field.default,
    )


def _steps(fields: list[FieldPlan]) -> list[tuple[FieldPlan, ...]]:
    steps: list[tuple[FieldPlan, ...]] = []
    for fixed, run in groupby(fields, key=lambda field: field.struct_code is not None):
        grouped = tuple(run)
        steps.extend([grouped] if fixed else [(field,) for field in grouped])
    return steps
