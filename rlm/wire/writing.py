"""Writes one primitive. rlm.wire.reading is the counterpart and defines the byte forms.

If a value does not fit its width, writing raises struct.error. The codec converts that to
ValueError.
"""

from __future__ import annotations

import struct
from typing import TypeVar
from uuid import UUID

from rlm.wire.schema import Buffer, Records, UnknownTags
from rsm.segment.errors import UnsupportedError

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

_ValueT = TypeVar("_ValueT")


class GatheredOutput(bytearray):
    """Represents output that refers to record batches and does not copy them. Not thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._inserts: list[tuple[int, tuple[Buffer, ...]]] = []

    def add_records(self, pieces: tuple[Buffer, ...]) -> None:
        """Insert `pieces` after the bytes written so far."""
        self._inserts.append((len(self), pieces))

    def parts(self) -> list[Buffer]:
        """Return all parts in order; while the result exists, writing fails."""
        written = memoryview(self).toreadonly()
        parts: list[Buffer] = []
        start = 0
        for end, pieces in self._inserts:
            parts += [written[start:end], *pieces]
            start = end
        return [*parts, written[start:]]


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Write a value ≥ 0."""
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def write_uuid(out: bytearray, value: UUID) -> None:
    """Write an id of 16 bytes."""
    out += value.bytes


def write_string(out: bytearray, value: str | None) -> None:
    """Write a string. Raises UnsupportedError for None."""
    raw = not_null(value).encode()
    out += _INT16.pack(len(raw))
    out += raw


def write_nullable_string(out: bytearray, value: str | None) -> None:
    """Write a string; write None as null."""
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_header_string(out: bytearray, value: str | None) -> None:
    """Write as `write_string`, but convert lone surrogates to the bytes that they represent."""
    raw = not_null(value).encode(errors="surrogateescape")
    out += _INT16.pack(len(raw))
    out += raw


def write_nullable_header_string(out: bytearray, value: str | None) -> None:
    """Write as `write_header_string`; write None as null."""
    if value is None:
        out += b"\xff\xff"
    else:
        write_header_string(out, value)


def write_compact_string(out: bytearray, value: str | None) -> None:
    """Write as `write_string`, in the compact form."""
    write_compact_bytes(out, not_null(value).encode())


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    """Write as `write_nullable_string`, in the compact form."""
    write_compact_nullable_bytes(out, None if value is None else value.encode())


def write_bytes(out: bytearray, value: bytes | None) -> None:
    """Write bytes. Raises UnsupportedError for None."""
    raw = not_null(value)
    out += _INT32.pack(len(raw))
    out += raw


def write_nullable_bytes(out: bytearray, value: bytes | None) -> None:
    """Write bytes; write None as null."""
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_bytes(out, value)


def write_compact_bytes(out: bytearray, value: bytes | None) -> None:
    """Write as `write_bytes`, in the compact form."""
    raw = not_null(value)
    write_unsigned_varint(out, len(raw) + 1)
    out += raw


def write_compact_nullable_bytes(out: bytearray, value: bytes | None) -> None:
    """Write as `write_nullable_bytes`, in the compact form."""
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


def write_records(out: bytearray, value: Records | None) -> None:
    """Write record batches, which may be several pieces. Raises UnsupportedError for None."""
    pieces = _pieces(value)
    out += _INT32.pack(sum(map(len, pieces)))
    _append(out, pieces)


def write_nullable_records(out: bytearray, value: Records | None) -> None:
    """Write as `write_records`; write None as null."""
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_records(out, value)


def write_compact_records(out: bytearray, value: Records | None) -> None:
    """Write as `write_records`, in the compact form."""
    pieces = _pieces(value)
    write_unsigned_varint(out, sum(map(len, pieces)) + 1)
    _append(out, pieces)


def write_compact_nullable_records(out: bytearray, value: Records | None) -> None:
    """Write as `write_nullable_records`, in the compact form."""
    if value is None:
        out.append(0)
    else:
        write_compact_records(out, value)


def write_presence(out: bytearray, is_there: bool) -> None:  # noqa: FBT001 - it is the value
    """Write the byte before a nullable structure."""
    out.append(0x01 if is_there else 0xFF)


def write_count(out: bytearray, count: int) -> None:
    """Write an array's count; -1 is null."""
    out += _INT32.pack(count)


def write_compact_count(out: bytearray, count: int) -> None:
    """Write as `write_count`, in the compact form."""
    write_unsigned_varint(out, count + 1)


def write_tags(out: bytearray, tags: UnknownTags | list[tuple[int, bytes]]) -> None:
    """Write tagged fields, which must ascend by tag."""
    write_unsigned_varint(out, len(tags))
    for tag, body in tags:
        write_unsigned_varint(out, tag)
        write_unsigned_varint(out, len(body))
        out += body


def not_null(value: _ValueT | None) -> _ValueT:
    """Return a value that cannot be null in this version. Raises UnsupportedError for None."""
    if value is None:
        raise _null_refused()
    return value


def _pieces(value: Records | None) -> tuple[Buffer, ...]:
    if value is None:
        raise _null_refused()
    return value if isinstance(value, tuple) else (value,)


def _null_refused() -> UnsupportedError:
    return UnsupportedError("cannot encode a message: its version does not allow null for a field")


def _append(out: bytearray, pieces: tuple[Buffer, ...]) -> None:
    if isinstance(out, GatheredOutput):
        out.add_records(pieces)
        return
    for piece in pieces:
        out += piece
