"""Decodes messages of magic 0 and 1, the predecessors of batches v2, which old logs still contain.

The value of a compressed message wraps other messages. Wrapped messages of magic 1 count offsets
from 0, and their wrapper has the last message's offset. This module does not know batches v2.
Source:
org.apache.kafka.common.record.AbstractLegacyRecordBatch, LegacyRecord.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from rsm.segment.batches.batch import BatchHeader, TimestampType, scan_batches
from rsm.segment.batches.compression import decompress
from rsm.segment.errors import CorruptError

_LENGTH = struct.Struct(">i")
_KEY_POSITION = {0: 18, 1: 26}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyMessage:
    """Represents one message. Its timestamp is -1 in magic 0, which has no timestamps."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def decode_messages(
    header: BatchHeader, message: memoryview, *, max_decompressed_bytes: int
) -> tuple[LegacyMessage, ...]:
    """Decode exactly one message of magic 0 or 1; if it is compressed, the messages that it wraps.

    Does not check CRCs. Raises CorruptError for invalid bytes, UnsupportedError for an unknown
    codec.
    """
    outer = _decode_one(header, message)
    if not header.compression_id:
        return (outer,)
    if outer.value is None:
        raise CorruptError("a compressed message has no value", offset=header.base_offset)
    wrapped = memoryview(
        decompress(header.compression_id, outer.value, max_bytes=max_decompressed_bytes)
    )
    inner = [
        (each, wrapped[start : start + each.length_bytes]) for start, each in scan_batches(wrapped)
    ]
    if not inner or sum(each.length_bytes for each, _ in inner) != len(wrapped):
        raise CorruptError("the wrapped messages are truncated", offset=header.base_offset)
    if any(each.magic != header.magic or each.compression_id for each, _ in inner):
        raise CorruptError(
            "a wrapped message has another magic, or is compressed", offset=header.base_offset
        )
    shift = header.base_offset - inner[-1][0].base_offset if header.magic == 1 else 0
    append_time = header.magic == 1 and header.timestamp_type is TimestampType.LOG_APPEND_TIME
    append_time_ms = header.max_timestamp_ms if append_time else None
    return tuple(
        _decode_one(each, content, shift=shift, append_time_ms=append_time_ms)
        for each, content in inner
    )


def _decode_one(
    header: BatchHeader, message: memoryview, *, shift: int = 0, append_time_ms: int | None = None
) -> LegacyMessage:
    key, position = _read_bytes(header, message, _KEY_POSITION[header.magic])
    value, position = _read_bytes(header, message, position)
    if position != len(message):
        expected, found = len(message), position
        raise CorruptError(
            "the message's length does not match its fields",
            offset=header.base_offset,
            expected=expected,
            found=found,
        )
    return LegacyMessage(
        offset=header.base_offset + shift,
        timestamp_ms=header.max_timestamp_ms if append_time_ms is None else append_time_ms,
        key=key,
        value=value,
    )


def _read_bytes(
    header: BatchHeader, message: memoryview, position: int
) -> tuple[bytes | None, int]:
    start = position + _LENGTH.size
    if start > len(message):
        raise CorruptError("the message is truncated", offset=header.base_offset, position=position)
    (length,) = _LENGTH.unpack_from(message, position)
    if length == -1:
        return None, start
    if not 0 <= length <= len(message) - start:
        raise CorruptError(
            "the length of a field is out of bounds", offset=header.base_offset, found_bytes=length
        )
    return bytes(message[start : start + length]), start + length
