"""Reads one primitive; checks each length against the remaining bytes.

The byte forms of primitives, arrays, structures and tags:

    string           int16 length, -1 null, UTF-8         compact: varint of length + 1, 0 null
    bytes, array     int32 length or count, -1 null       compact: varint of length + 1, 0 null
    records          as bytes
    structure        its fields                            nullable: first a byte, negative for null
    unsigned varint  7 bits a byte, least significant first, at most 5 bytes
    tags             varint count, then (varint tag, varint size, size bytes) by ascending tag

A read past the end raises struct.error or IndexError; the codec converts both to CorruptError.
Source: Kafka's protocol guide, KIP-482, org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from uuid import UUID

from rlm.wire.schema import Buffer, UnknownTags
from rsm.segment.errors import CorruptError

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_UUID = struct.Struct(">16s")
_VARINT_BITS = 32
_SMALLEST_TAG_BYTES = 2


def read_unsigned_varint(data: Buffer | bytearray, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of 32 bits. Raises CorruptError if it is wider."""
    byte = data[pos]
    if byte < 0x80:  # Nearly all lengths in a message take one byte.
        return byte, pos + 1
    value = 0
    for shift in range(0, _VARINT_BITS, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> _VARINT_BITS:
                break
            return value, pos
    raise CorruptError("an unsigned varint is invalid: it is wider than 32 bits", position=pos)


def read_uuid(data: Buffer, pos: int) -> tuple[UUID, int]:
    """Read an id of 16 bytes."""
    (raw,) = _UUID.unpack_from(data, pos)
    return _uuid(raw), pos + 16


@lru_cache(maxsize=10_000)
def _uuid(raw: bytes) -> UUID:
    """Return the same object for equal ids, because messages often hash and compare ids."""
    return UUID(bytes=raw)


def read_string(data: Buffer, pos: int) -> tuple[str, int]:
    """Read a string that cannot be null."""
    (length,) = _INT16.unpack_from(data, pos)
    return _text(data, pos + 2, length)


def read_nullable_string(data: Buffer, pos: int) -> tuple[str | None, int]:
    """Read a string; return None for null."""
    (length,) = _INT16.unpack_from(data, pos)
    return (None, pos + 2) if length == -1 else _text(data, pos + 2, length)


def read_header_string(data: Buffer, pos: int) -> tuple[str, int]:
    """Read as `read_string`, but keep bytes that are not UTF-8 as lone surrogates."""
    raw, pos = _short_bytes(data, pos)
    return raw.decode(errors="surrogateescape"), pos


def read_nullable_header_string(data: Buffer, pos: int) -> tuple[str | None, int]:
    """Read as `read_header_string`; return None for null."""
    (length,) = _INT16.unpack_from(data, pos)
    return (None, pos + 2) if length == -1 else read_header_string(data, pos)


def read_compact_string(data: Buffer, pos: int) -> tuple[str, int]:
    """Read as `read_string`, in the compact form."""
    length, pos = read_unsigned_varint(data, pos)
    return _text(data, pos, length - 1)


def read_compact_nullable_string(data: Buffer, pos: int) -> tuple[str | None, int]:
    """Read as `read_nullable_string`, in the compact form."""
    length, pos = read_unsigned_varint(data, pos)
    return (None, pos) if length == 0 else _text(data, pos, length - 1)


def read_bytes(data: Buffer, pos: int) -> tuple[bytes, int]:
    """Read bytes that cannot be null."""
    (length,) = _INT32.unpack_from(data, pos)
    return _slice(data, pos + 4, length)


def read_nullable_bytes(data: Buffer, pos: int) -> tuple[bytes | None, int]:
    """Read bytes; return None for null."""
    (length,) = _INT32.unpack_from(data, pos)
    return (None, pos + 4) if length == -1 else _slice(data, pos + 4, length)


def read_compact_bytes(data: Buffer, pos: int) -> tuple[bytes, int]:
    """Read as `read_bytes`, in the compact form."""
    length, pos = read_unsigned_varint(data, pos)
    return _slice(data, pos, length - 1)


def read_compact_nullable_bytes(data: Buffer, pos: int) -> tuple[bytes | None, int]:
    """Read as `read_nullable_bytes`, in the compact form."""
    length, pos = read_unsigned_varint(data, pos)
    return (None, pos) if length == 0 else _slice(data, pos, length - 1)


def read_records(data: Buffer, pos: int) -> tuple[memoryview, int]:
    """Read record batches that cannot be null; return a slice of `data`, not a copy."""
    (length,) = _INT32.unpack_from(data, pos)
    return _view(data, pos + 4, length)


def read_nullable_records(data: Buffer, pos: int) -> tuple[memoryview | None, int]:
    """Read as `read_records`; return None for null."""
    (length,) = _INT32.unpack_from(data, pos)
    return (None, pos + 4) if length == -1 else _view(data, pos + 4, length)


def read_compact_records(data: Buffer, pos: int) -> tuple[memoryview, int]:
    """Read as `read_records`, in the compact form."""
    length, pos = read_unsigned_varint(data, pos)
    return _view(data, pos, length - 1)


def read_compact_nullable_records(data: Buffer, pos: int) -> tuple[memoryview | None, int]:
    """Read as `read_nullable_records`, in the compact form."""
    length, pos = read_unsigned_varint(data, pos)
    return (None, pos) if length == 0 else _view(data, pos, length - 1)


def read_presence(data: Buffer, pos: int) -> tuple[bool, int]:
    """Read the byte before a nullable structure; return whether the structure follows."""
    return data[pos] < 0x80, pos + 1


def read_count(data: Buffer, pos: int, element_bytes: int) -> tuple[int, int]:
    """Read an array's count; return -1 for null.

    Raises CorruptError if `data` is too short for that many elements of at least `element_bytes`.
    So a forged count cannot make the caller allocate memory out of proportion to `data`.
    """
    (count,) = _INT32.unpack_from(data, pos)
    return _checked_count(data, pos + 4, count, element_bytes), pos + 4


def read_compact_count(data: Buffer, pos: int, element_bytes: int) -> tuple[int, int]:
    """Read as `read_count`, in the compact form."""
    count, pos = read_unsigned_varint(data, pos)
    return _checked_count(data, pos, count - 1, element_bytes), pos


def read_tags(data: Buffer, pos: int) -> tuple[UnknownTags, int]:
    """Read the tagged fields at the end of a structure, each as (tag, bytes)."""
    count, pos = read_unsigned_varint(data, pos)
    if count == 0:
        return (), pos
    _checked_count(data, pos, count, _SMALLEST_TAG_BYTES)
    tags = []
    previous = -1
    for _ in range(count):
        tag, pos = read_unsigned_varint(data, pos)
        if tag <= previous:
            raise CorruptError(
                "tagged fields are invalid: their tags do not ascend", tag=tag, previous=previous
            )
        previous = tag
        size, pos = read_unsigned_varint(data, pos)
        body, pos = _slice(data, pos, size)
        tags.append((tag, body))
    return tuple(tags), pos


def _short_bytes(data: Buffer, pos: int) -> tuple[bytes, int]:
    (length,) = _INT16.unpack_from(data, pos)
    return _slice(data, pos + 2, length)


def _text(data: Buffer, pos: int, length: int) -> tuple[str, int]:
    end = pos + length
    if length < 0 or end > len(data):
        raise CorruptError(
            "a string is invalid: its length is negative or exceeds the message",
            length_bytes=length,
            position=pos,
        )
    return str(data[pos:end], "utf-8"), end


def _slice(data: Buffer, pos: int, length: int) -> tuple[bytes, int]:
    end = pos + length
    if length < 0 or end > len(data):
        raise CorruptError(
            "a value is invalid: its length is negative or exceeds the message",
            length_bytes=length,
            position=pos,
        )
    return bytes(data[pos:end]), end


def _view(data: Buffer, pos: int, length: int) -> tuple[memoryview, int]:
    end = pos + length
    if length < 0 or end > len(data):
        raise CorruptError(
            "records are invalid: their length is negative or exceeds the message",
            length_bytes=length,
        )
    return memoryview(data)[pos:end], end


def _checked_count(data: Buffer, pos: int, count: int, element_bytes: int) -> int:
    if count < -1 or count * element_bytes > len(data) - pos:
        raise CorruptError(
            "a count is invalid: it is below -1 or too large for the message",
            count=count,
            position=pos,
        )
    return count
