"""Reads one field of a frame that arrives in pieces; the data may end within the field.

The byte forms are those of rlm.wire.reading. Each function raises IncompleteUnit if the data ends
within the field, and CorruptError for errors that more data cannot resolve. Otherwise it returns
the position after the field; most functions also return the field's value.
"""

from __future__ import annotations

import struct

from rlm.wire.reading import read_unsigned_varint
from rsm.segment.errors import CorruptError

# A received piece, or the buffered beginning of a unit together with newer bytes.
Data = memoryview | bytearray

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_MAX_STRING_BYTES = 0x7FFF


class IncompleteUnit(Exception):  # noqa: N818 - not an error: the rest has not arrived yet
    """Raised if the data ends within the unit."""


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
        raise CorruptError("an array is invalid: its count is negative", count=count)
    return count, end


def nullable_length_unit(data: Data, position: int, *, flexible: bool) -> tuple[int, int]:
    """Read the length of bytes or the count of an array; return 0 for null."""
    length, end = _length(data, position, flexible=flexible)
    if length < -1:
        raise CorruptError("a nullable length is invalid: it is below -1", length=length)
    return max(length, 0), end


def string_unit(data: Data, position: int, *, flexible: bool) -> tuple[str, int]:
    """Read a string that cannot be null. Raises CorruptError if it exceeds 32,767 bytes."""
    if flexible:
        length, start = varint_unit(data, position)
        length -= 1
    else:
        start = fixed_unit(data, position, _INT16.size)
        (length,) = _INT16.unpack_from(data, position)
    if not 0 <= length <= _MAX_STRING_BYTES:
        raise CorruptError("a string is invalid: its length is out of bounds", length_bytes=length)
    end = fixed_unit(data, start, length)
    try:
        return str(data[start:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise CorruptError("a string is invalid: it is not UTF-8") from error


def compact_nullable_string_unit(data: Data, position: int) -> int:
    """Return the position after a compact string or null.

    Raises CorruptError if the string exceeds 32,767 bytes.
    """
    length, start = nullable_length_unit(data, position, flexible=True)
    if length > _MAX_STRING_BYTES:
        raise CorruptError("a string is invalid: its length is out of bounds", length_bytes=length)
    return fixed_unit(data, start, length)


def _length(data: Data, position: int, *, flexible: bool) -> tuple[int, int]:
    if flexible:
        length, end = varint_unit(data, position)
        return length - 1, end
    end = fixed_unit(data, position, _INT32.size)
    return int(_INT32.unpack_from(data, position)[0]), end
