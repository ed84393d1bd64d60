"""The records of a batch v2, and the marker of a control batch.

Owns the record format (KIP-98) inside a batch whose header is known. Must not know files or where
batches come from. A record, behind its length as varint:

    attributes        i8, unused
    timestamp delta   varlong, to the batch's base timestamp
    offset delta      varint, to the batch's base offset
    key, value        varint length (-1: null), bytes
    headers           varint count, then for each: varint length, name; varint length (-1), value

Source: org.apache.kafka.common.record.DefaultRecord, ControlRecordType, EndTransactionMarker.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from rsm.segment.batch import HEADER_BYTES, BatchHeader, TimestampType
from rsm.segment.compression import MAX_DECOMPRESSED_BYTES, decompress
from rsm.segment.errors import CorruptError
from rsm.segment.legacy_messages import decode_messages
from rsm.segment.varint import read_varint, read_varlong

# Length, attributes, two deltas, two null lengths and the header count: a byte each at least.
_MIN_RECORD_BYTES = 7
_MIN_HEADER_BYTES = 2
_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record as a consumer sees it; a header is (name, value)."""

    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ControlType(IntEnum):
    """What a control batch says; UNKNOWN is to be skipped, as consumers do."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """The end of a producer's transaction. It takes an offset and is no record of a user's."""

    offset: int
    timestamp_ms: int
    type: ControlType
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def decode_records(
    header: BatchHeader,
    batch: bytes | memoryview,
    *,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> tuple[Record, ...]:
    """Decode the records of `batch`, the bytes of exactly one, in order of offset.

    A control batch has none. Where the broker set the timestamps (LogAppendTime) all records have
    the batch's maximum. Does not check the CRC. Raises CorruptError if the bytes are not what the
    header says, UnsupportedError for an unknown codec. Memory: the batch's plain bytes, at most
    `max_decompressed_bytes`, and the records made of them.
    """
    _require_one_batch(header, batch)
    if header.is_control:
        return ()
    if header.magic < 2:
        return _decode_legacy(header, batch, max_decompressed_bytes)
    return _decode_all(header, batch, max_decompressed_bytes)


def decode_control_record(header: BatchHeader, batch: bytes | memoryview) -> ControlRecord:
    """Decode the marker of a control batch; CorruptError if there isn't exactly one."""
    _require_one_batch(header, batch)
    if not header.is_control or header.record_count != 1:
        found = f"control {header.is_control}, {header.record_count} records"
        raise _corrupt(header, "not one marker", "a control batch of 1 record", found)
    (marker,) = _decode_all(header, batch, max_bytes=len(batch))
    key, value = marker.key or b"", marker.value or b""
    if len(key) < _CONTROL_KEY.size:
        raise CorruptError("marker without a type", offset=marker.offset, found=key.hex())
    _, type_id = _CONTROL_KEY.unpack_from(key)
    known = type_id in (ControlType.ABORT, ControlType.COMMIT)
    if known and len(value) < _CONTROL_VALUE.size:
        raise CorruptError("marker cut short", offset=marker.offset, found=value.hex())
    return ControlRecord(
        offset=marker.offset,
        timestamp_ms=marker.timestamp_ms,
        type=ControlType(type_id) if known else ControlType.UNKNOWN,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        coordinator_epoch=_CONTROL_VALUE.unpack_from(value)[1] if known else -1,
    )


def _require_one_batch(header: BatchHeader, batch: bytes | memoryview) -> None:
    if len(batch) != header.length_bytes:
        raise _corrupt(header, "not one batch", header.length_bytes, len(batch))


def _decode_legacy(
    header: BatchHeader, batch: bytes | memoryview, max_bytes: int
) -> tuple[Record, ...]:
    messages = decode_messages(header, memoryview(batch), max_decompressed_bytes=max_bytes)
    timestamp_type = header.timestamp_type
    return tuple(
        Record(
            offset=message.offset,
            timestamp_ms=message.timestamp_ms,
            timestamp_type=timestamp_type,
            key=message.key,
            value=message.value,
        )
        for message in messages
    )


def _decode_all(
    header: BatchHeader, batch: bytes | memoryview, max_bytes: int
) -> tuple[Record, ...]:
    payload = memoryview(batch)[HEADER_BYTES:]
    # A compacted batch may be empty, and then holds nothing to decompress either.
    data = decompress(header.compression_id, payload, max_bytes=max_bytes) if payload else b""
    if header.record_count > len(data) // _MIN_RECORD_BYTES:
        raise _corrupt(header, "more records than fit", len(data), header.record_count)
    records = []
    timestamp_type = header.timestamp_type
    position = 0
    for _ in range(header.record_count):
        record, position = _decode_record(header, timestamp_type, data, position)
        records.append(record)
    if position != len(data):
        raise _corrupt(header, "bytes behind the last record", position, len(data))
    return tuple(records)


def _decode_record(
    header: BatchHeader, timestamp_type: TimestampType, data: bytes, position: int
) -> tuple[Record, int]:
    length, start = read_varint(data, position)
    end = start + length
    if not start < end <= len(data):
        raise _corrupt(header, "record out of bounds", f"at most {len(data) - start}", length)
    timestamp_delta, cursor = read_varlong(data, start + 1)
    offset_delta, cursor = read_varint(data, cursor)
    key, cursor = _read_bytes(header, data, cursor)
    value, cursor = _read_bytes(header, data, cursor)
    headers, cursor = _read_headers(header, data, cursor)
    if cursor != end:
        raise _corrupt(header, "record is not as long as it says", end - start, cursor - start)
    if not 0 <= offset_delta <= header.last_offset_delta:
        expected = f"0..{header.last_offset_delta}"
        raise _corrupt(header, "offset outside the batch", expected, offset_delta)
    create_time = timestamp_type is TimestampType.CREATE_TIME
    create_time_ms = header.base_timestamp_ms + timestamp_delta
    return (
        Record(
            offset=header.base_offset + offset_delta,
            timestamp_ms=create_time_ms if create_time else header.max_timestamp_ms,
            timestamp_type=timestamp_type,
            key=key,
            value=value,
            headers=headers,
        ),
        end,
    )


def _read_headers(
    header: BatchHeader, data: bytes, position: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = read_varint(data, position)
    if count == 0:
        return (), position
    if not 0 < count <= (len(data) - position) // _MIN_HEADER_BYTES:
        raise _corrupt(header, "more headers than fit", len(data) - position, count)
    headers = []
    for _ in range(count):
        name, position = _read_bytes(header, data, position)
        if name is None:
            raise _corrupt(header, "header without a name", ">= 0", -1)
        value, position = _read_bytes(header, data, position)
        # Names are UTF-8 that no broker checks; what isn't is shown as Java clients show it.
        headers.append((name.decode("utf-8", errors="replace"), value))
    return tuple(headers), position


def _read_bytes(header: BatchHeader, data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        if length != -1:
            raise _corrupt(header, "negative length", ">= -1", length)
        return None, position
    end = position + length
    if end > len(data):
        raise _corrupt(header, "field cut short", length, len(data) - position)
    return data[position:end], end


def _corrupt(header: BatchHeader, message: str, expected: object, found: object) -> CorruptError:
    return CorruptError(message, base_offset=header.base_offset, expected=expected, found=found)
