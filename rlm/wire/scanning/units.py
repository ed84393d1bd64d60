"""Reads one field of a frame that arrives in pieces; the data may end within the field.

The byte forms are those of rlm.wire.reading. Every function raises IncompleteUnit if the data ends
within the field. Otherwise it returns the position after the field, and most return its value, too.
CorruptError is for errors that more data cannot resolve.
"""

from __future__ import annotations

import struct

from rlm.wire.reading import read_unsigned_varint
from rsm.segment.errors import CorruptError

# A received piece, or the buffered beginning of a unit with the bytes that complete it.
Data = memoryview | bytearray

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_MAX_STRING_BYTES = 0x7FFF


class IncompleteUnit(Exception):  # noqa: N818 - not an error: the rest has not arrived yet
    """The data ends within the unit."""


def fixed_unit(data: Data, position: int, unit_bytes: int) -> int:
    """Return the position after a unit of fixed width."""
    end = position + unit_bytes
    if end > len(data):
        raise IncompleteUnit
    return end


def varint_unit(data: Data, position: int) -> tuple[int, int]:
    """Read an unsigned varint."""
    try:
        return read_unsigned_varint(data, position)
    except IndexError:
        raise IncompleteUnit from None


def count_unit(data: Data, position: int, *, flexible: bool) -> tuple[int, int]:
    """Read the count of an array that cannot be null."""
    count, end = _length(data, position, flexible=flexible)
    if count < 0:
        raise CorruptError("an array has a negative length", count=count)
    return count, end


def nullable_length_unit(data: Data, position: int, *, flexible: bool) -> tuple[int, int]:
    """Read the length of bytes or the count of an array, 0 for null."""
    length, end = _length(data, position, flexible=flexible)
    if length < -1:
        raise CorruptError("the length of an array or of bytes is below -1", length=length)
    return max(length, 0), end


def string_unit(data: Data, position: int, *, flexible: bool) -> tuple[str, int]:
    """Read a string that cannot be null, of at most 32,767 bytes in either form."""
    if flexible:
        length, start = varint_unit(data, position)
        length -= 1
    else:
        start = fixed_unit(data, position, _INT16.size)
        (length,) = _INT16.unpack_from(data, position)
    if not 0 <= length <= _MAX_STRING_BYTES:
        raise CorruptError("a string has an impossible length", length_bytes=length)
    end = fixed_unit(data, start, length)
    try:
        return str(data[start:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise CorruptError("string is not UTF-8") from error


def compact_nullable_string_unit(data: Data, position: int) -> int:
    """Return the position after a compact string of at most 32,767 bytes, or null."""
    length, start = nullable_length_unit(data, position, flexible=True)
    if length > _MAX_STRING_BYTES:
        raise CorruptError("a string has an impossible length", length_bytes=length)
    return fixed_unit(data, start, length)


def _length(data: Data, position: int, *, flexible: bool) -> tuple[int, int]:
    if flexible:
        length, end = varint_unit(data, position)
        return length - 1, end
    end = fixed_unit(data, position, _INT32.size)
    return int(_INT32.unpack_from(data, position)[0]), end
