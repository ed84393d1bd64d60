"""Parses Confluent's wire format, which identifies the writer's schema of a payload. Pure.

    bytes 0      magic, 0
    bytes 1–4    schema id, big endian
    then         Protobuf only: the number of the message's indexes within its file, then the
                 indexes, all as zigzag varints; the number 0 means the file's first message
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
    """Return the schema id in the header.

    Raises CorruptError if the payload has no header, UnsupportedError if the header has a GUID.
    """
    if len(payload) < HEADER_BYTES:
        raise CorruptError(
            "cannot read the schema id: the payload is too short",
            size_bytes=len(payload),
            least_bytes=HEADER_BYTES,
        )
    if payload[0] == _GUID_MAGIC:
        raise UnsupportedError("cannot read the schema id: the header has a GUID instead")
    if payload[0] != _MAGIC:
        raise CorruptError(
            "cannot read the schema id: the payload does not begin with the magic byte",
            found=payload[0],
            expected=_MAGIC,
        )
    return int.from_bytes(payload[1:HEADER_BYTES], "big")


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Parse the message indexes at the start of a payload without its header.

    Returns them and the position after them. Raises CorruptError if they are invalid.
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
            raise CorruptError("a message index is invalid: it is negative", found=index)
        indexes.append(index)
    return tuple(indexes), position


def _varint(payload: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint of at most 5 bytes, and the next position."""
    value = 0
    for number in range(_MAX_VARINT_BYTES):
        if position >= len(payload):
            raise CorruptError("the message indexes are invalid: the payload ends within a number")
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise CorruptError(
        "the message indexes are invalid: a number is too long", most_bytes=_MAX_VARINT_BYTES
    )
