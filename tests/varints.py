"""Writes the variable-length integers that rsm.segment.batches.varint reads."""

from __future__ import annotations


def encode_varint(value: int) -> bytes:
    """Return the bytes of a signed 32-bit value. Raises ValueError if it does not fit."""
    return _encode_zigzag(value, 32)


def encode_varlong(value: int) -> bytes:
    """Return the bytes of a signed 64-bit value. Raises ValueError if it does not fit."""
    return _encode_zigzag(value, 64)


def _encode_zigzag(value: int, bits: int) -> bytes:
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise ValueError(f"{value} does not fit {bits} bits")
    raw = (value << 1) ^ (value >> (bits - 1))
    encoded = bytearray()
    while raw >= 0x80:
        encoded.append((raw & 0x7F) | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)
