"""Parses the Confluent wire format, which names the writer's schema of a payload. Pure.

    bytes 0      magic, 0
    bytes 1–4    schema id, big endian
    then         Protobuf only: indexes of the message within its file, as zigzag varints,
                 their count first; a count of 0 is the file's first message
    then         the payload

Source: Confluent's "Formats, Serializers, and Deserializers", section "Wire format".
"""

from __future__ import annotations

from rsm.segment.errors import CorruptError, UnsupportedError

HEADER_BYTES = 5
_MAGIC = 0
_GUID_MAGIC = 1
_MAX_INDEXES = 64
_MAX_VARINT_BYTES = 5


def schema_id_of(payload: bytes) -> int:
    """Return the header's id. Raises CorruptError without a header, UnsupportedError for a GUID."""
    if len(payload) < HEADER_BYTES:
        raise CorruptError("the value is too short for the wire format", size_bytes=len(payload))
    if payload[0] == _GUID_MAGIC:
        raise UnsupportedError(
            "cannot decode the value: its prefix has the schema's GUID instead of an id"
        )
    if payload[0] != _MAGIC:
        raise CorruptError(
            "the value does not begin with the wire format's magic byte",
            found=payload[0],
            expected=_MAGIC,
        )
    return int.from_bytes(payload[1:HEADER_BYTES], "big")


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Parse the indexes of a payload without its header; return them and the next position.

    Raises CorruptError.
    """
    count, position = _varint(payload, 0)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MAX_INDEXES:
        raise CorruptError(
            "the number of message indexes is invalid", found=count, most=_MAX_INDEXES
        )
    indexes = []
    for _ in range(count):
        index, position = _varint(payload, position)
        if index < 0:
            raise CorruptError("a message index is negative", found=index)
        indexes.append(index)
    return tuple(indexes), position


def _varint(payload: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint of 32 bits and the next position."""
    value = 0
    for number in range(_MAX_VARINT_BYTES):
        if position >= len(payload):
            raise CorruptError("message indexes end within a number")
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise CorruptError("a message index is too long")
