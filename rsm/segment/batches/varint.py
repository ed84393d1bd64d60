"""Decodes variable-length integers of batches v2 (KIP-98) and flexible messages (KIP-482).

A varint has 32 bits in at most 5 bytes, a varlong 64 bits in at most 10 bytes. Each byte contains
seven bits, and the least significant bits come first. The byte's top bit announces another byte.
Signed numbers have the sign in the lowest bit (zig-zag).
Source: org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations

from rsm.segment.errors import CorruptError

_VARINT_BITS = 32
_VARLONG_BITS = 64
_CONTINUED = 0x80

ONE_BYTE: tuple[int, ...] = tuple((raw >> 1) ^ -(raw & 1) for raw in range(_CONTINUED))
"""The signed value of each one-byte number, which is below 0x80."""


def _continued_by_one(first: int) -> tuple[int, ...]:
    low = (first & 0x7F) >> 1
    values = range(low, low + (1 << 13), 1 << 6)
    return tuple(~value for value in values) if first & 1 else tuple(values)


TWO_BYTES: tuple[tuple[int, ...], ...] = ((),) * _CONTINUED + tuple(
    _continued_by_one(first) for first in range(_CONTINUED, 2 * _CONTINUED)
)
"""The signed value of each two-byte number: the first byte is >= 0x80, the second below 0x80.

Loops over many records use this table, because a lookup takes a quarter of the time of a call.
"""


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Decode a 32-bit value at `position`; return it and the position after it.

    Raises CorruptError if `data` ends early or the value exceeds 32 bits.
    """
    if position + 1 < len(data):  # Nearly all lengths and deltas of a batch fit into two bytes.
        raw = data[position]
        if raw < 0x80:
            return (raw >> 1) ^ -(raw & 1), position + 1
        second = data[position + 1]
        if second < 0x80:
            raw = (raw & 0x7F) | second << 7
            return (raw >> 1) ^ -(raw & 1), position + 2
    return _read_zigzag(data, position, _VARINT_BITS)


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Decode a 64-bit value at `position`, as `read_varint` does for 32 bits."""
    if position < len(data):
        byte = data[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
    return _read_zigzag(data, position, _VARLONG_BITS)


def read_unsigned_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Decode an unsigned 32-bit value at `position`; return it and the position after it.

    Raises the errors of `read_varint`.
    """
    return _read_raw(data, position, _VARINT_BITS)


def _read_zigzag(data: bytes | memoryview, position: int, bits: int) -> tuple[int, int]:
    raw, position = _read_raw(data, position, bits)
    return (raw >> 1) ^ -(raw & 1), position


def _read_raw(data: bytes | memoryview, position: int, bits: int) -> tuple[int, int]:
    raw = 0
    cursor = position
    for shift in range(0, bits, 7):
        if cursor >= len(data):
            raise CorruptError("a variable-length integer is truncated", position=position)
        byte = data[cursor]
        cursor += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> bits:
                break
            return raw, cursor
    raise CorruptError(
        "a variable-length integer is too wide", position=position, expected_bits=bits
    )
