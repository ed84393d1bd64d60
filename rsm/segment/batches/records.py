"""Decodes the records of a batch (KIP-98), and the marker of a control batch.

The caller passes the batch and its parsed header. This module does not know files or the source of
batches. A record v2 consists of its length as a varint, and then:

    attributes        i8, unused
    timestamp delta   varlong, relative to the batch's base timestamp
    offset delta      varint, relative to the batch's base offset
    key, value        varint length (-1: null), bytes
    headers           varint count, then for each: varint length, name; varint length (-1), value

Source: org.apache.kafka.common.record.DefaultRecord, ControlRecordType, EndTransactionMarker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from rsm.segment.batches.batch import HEADER_BYTES, BatchHeader, TimestampType
from rsm.segment.batches.compression import MAX_DECOMPRESSED_BYTES, decompress
from rsm.segment.batches.legacy_messages import decode_messages
from rsm.segment.batches.varint import ONE_BYTE, TWO_BYTES, read_varint, read_varlong
from rsm.segment.errors import CorruptError

# Length, attributes, two deltas, two null lengths and the header count: at least one byte each.
_MIN_RECORD_BYTES = 7
_MIN_HEADER_BYTES = 2
# The fields of a record after its deltas: two null lengths and the header count.
_MIN_CONTENT_BYTES = 3
# An empty header takes 2 bytes that compress to almost nothing, and about 100 bytes of memory.
_HEADERS_MAX_COUNT = 1_000_000
_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")
_new = tuple.__new__


Headers = tuple[tuple[str, bytes | None], ...]
"""The (name, value) pairs in order."""


class Record(NamedTuple):
    """Represents one record as a consumer sees it.

    This class is a tuple for speed: a dataclass takes five times as long to create.
    """

    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class ControlType(IntEnum):
    """Represents the type of a control batch; readers skip UNKNOWN, as consumers do."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """Represents the marker that ends a transaction. It has an offset, but is no user's record."""

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
    """Decode the records of `batch`, which is exactly one batch, in order of offset.

    Returns no records for a control batch. With LogAppendTime, all records have the batch's maximum
    timestamp. Does not check the CRC. Raises CorruptError if the bytes are invalid or contradict
    the header, or if a record has more than 1,000,000 headers. Raises UnsupportedError for an
    unknown codec. Memory: the records, and for a compressed batch at most twice
    `max_decompressed_bytes`.
    """
    _require_one_batch(header, batch)
    if header.is_control:
        return ()
    if header.magic < 2:
        return _decode_legacy(header, batch, max_decompressed_bytes)
    return _decode_all(header, batch, max_decompressed_bytes)


def record_times(
    header: BatchHeader,
    batch: bytes | memoryview,
    *,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[tuple[int, int]]:
    """Yield the offset and the timestamp of each record that `decode_records` returns.

    Raises the errors of `decode_records`, each when the iteration reaches its record. Skips keys,
    values and headers without checks. Memory: for a compressed batch, at most twice
    `max_decompressed_bytes`; for one of magic 0 or 1, also the messages.
    """
    _require_one_batch(header, batch)
    if header.is_control:
        return
    if header.magic < 2:
        for record in _decode_legacy(header, batch, max_decompressed_bytes):
            yield record.offset, record.timestamp_ms
        return
    yield from _plain_times(header, _plain_data(header, batch, max_decompressed_bytes))


def decode_control_record(header: BatchHeader, batch: bytes | memoryview) -> ControlRecord:
    """Decode the marker of a control batch. Raises CorruptError if it is not one valid marker."""
    _require_one_batch(header, batch)
    if not header.is_control or header.record_count != 1:
        found = f"control {header.is_control}, {header.record_count} records"
        raise _corrupt(header, "the batch is not a marker", "a control batch of 1 record", found)
    (marker,) = _decode_all(header, batch, max_bytes=len(batch))
    key, value = marker.key or b"", marker.value or b""
    if len(key) < _CONTROL_KEY.size:
        raise CorruptError(
            "the transaction marker has no type", offset=marker.offset, found=key.hex()
        )
    _, type_id = _CONTROL_KEY.unpack_from(key)
    known = type_id in (ControlType.ABORT, ControlType.COMMIT)
    if known and len(value) < _CONTROL_VALUE.size:
        raise CorruptError(
            "the transaction marker is truncated", offset=marker.offset, found=value.hex()
        )
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
        raise _corrupt(header, "the bytes are not one whole batch", header.length_bytes, len(batch))


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
    data = _plain_data(header, batch, max_bytes)
    try:
        records, position = _decode_plain(header, data)
    except IndexError as error:
        raise _corrupt(header, "the records are truncated", "more bytes", len(data)) from error
    _require_end(header, data, position)
    return tuple(records)


def _plain_data(header: BatchHeader, batch: bytes | memoryview, max_bytes: int) -> bytes:
    """Return the decompressed records. Raises CorruptError if they cannot be as many as stated."""
    payload = memoryview(batch)[HEADER_BYTES:]
    # Compaction may leave an empty batch, which has no payload to decompress.
    data = decompress(header.compression_id, payload, max_bytes=max_bytes) if payload else b""
    most = len(data) // _MIN_RECORD_BYTES
    if header.record_count > most:
        raise _corrupt(header, "the record count is too large", f"<= {most}", header.record_count)
    return data


def _require_end(header: BatchHeader, data: bytes, position: int) -> None:
    if position != len(data):
        raise _corrupt(header, "there are bytes after the last record", position, len(data))


def _plain_times(header: BatchHeader, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the offset and timestamp of each record."""
    position, data_bytes, last_delta = 0, len(data), header.last_offset_delta
    base_offset, base_ms = header.base_offset, header.base_timestamp_ms
    append_time_ms = header.max_timestamp_ms if header.timestamp_type else None
    for _ in range(header.record_count):
        length, position = read_varint(data, position)
        end = position + length
        delta_ms, position = read_varlong(data, position + 1)  # This skips the attributes.
        delta, position = read_varint(data, position)
        content_end = position + _MIN_CONTENT_BYTES
        if not content_end <= end <= data_bytes or not 0 <= delta <= last_delta:
            expected = f"end {content_end}..{data_bytes}, offset delta 0..{last_delta}"
            raise _corrupt(header, "a record is malformed", expected, (end, delta))
        yield base_offset + delta, base_ms + delta_ms if append_time_ms is None else append_time_ms
        position = end
    _require_end(header, data, position)


def _decode_plain(  # noqa: C901, PLR0912 - a call per number would double the time
    header: BatchHeader, data: bytes
) -> tuple[list[Record], int]:
    """Decode the records; return them and their end position.

    Raises IndexError if the bytes end early. Looks up numbers of one or two bytes inline. The only
    bounds check compares the position after each record with the record's end.
    """
    records, position, last_delta = [], 0, header.last_offset_delta
    base_offset, base_ms = header.base_offset, header.base_timestamp_ms
    timestamp_type = header.timestamp_type
    append_time_ms = header.max_timestamp_ms if timestamp_type else None
    for _ in range(header.record_count):
        if (first := data[position]) < 0x80:
            length, position = ONE_BYTE[first], position + 1
        elif (second := data[position + 1]) < 0x80:
            length, position = TWO_BYTES[first][second], position + 2
        else:
            length, position = read_varint(data, position)
        end = position + length
        position += 1  # This skips the attributes.
        if (first := data[position]) < 0x80:
            delta_ms, position = ONE_BYTE[first], position + 1
        elif (second := data[position + 1]) < 0x80:
            delta_ms, position = TWO_BYTES[first][second], position + 2
        else:
            delta_ms, position = read_varlong(data, position)
        if (first := data[position]) < 0x80:
            delta, position = ONE_BYTE[first], position + 1
        elif (second := data[position + 1]) < 0x80:
            delta, position = TWO_BYTES[first][second], position + 2
        else:
            delta, position = read_varint(data, position)
        if (first := data[position]) < 0x80:
            length, start = ONE_BYTE[first], position + 1
        else:
            length, start = read_varint(data, position)
        position = start + length
        key: bytes | None = data[start:position]
        if length < 0:
            key, position = _null(header, length), start
        if (first := data[position]) < 0x80:
            length, start = ONE_BYTE[first], position + 1
        elif (second := data[position + 1]) < 0x80:
            length, start = TWO_BYTES[first][second], position + 2
        else:
            length, start = read_varint(data, position)
        position = start + length
        value: bytes | None = data[start:position]
        if length < 0:
            value, position = _null(header, length), start
        headers, position = (
            _read_headers(header, data, position) if data[position] else ((), position + 1)
        )
        if position != end or not 0 <= delta <= last_delta:
            raise _corrupt(header, "a record is malformed", (end, last_delta), (position, delta))
        time_ms = base_ms + delta_ms if append_time_ms is None else append_time_ms
        fields = (base_offset + delta, time_ms, timestamp_type, key, value, headers)
        records.append(_new(Record, fields))
    return records, position


def _read_headers(header: BatchHeader, data: bytes, position: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position)
    most = min((len(data) - position) // _MIN_HEADER_BYTES, _HEADERS_MAX_COUNT)
    if not 0 <= count <= most:
        raise _corrupt(header, "the header count is invalid", f"0..{most}", count)
    headers = []
    for _ in range(count):
        if (first := data[position]) < 0x80:
            length, start = ONE_BYTE[first], position + 1
        else:
            length, start = read_varint(data, position)
        if length < 0:
            raise _corrupt(header, "a header has no name", ">= 0", length)
        position = start + length
        # Brokers do not check that names are UTF-8. Java clients replace invalid bytes, too.
        name = data[start:position].decode("utf-8", "replace")
        if (first := data[position]) < 0x80:
            length, start = ONE_BYTE[first], position + 1
        else:
            length, start = read_varint(data, position)
        position = start + length
        value: bytes | None = data[start:position]
        if length < 0:
            value, position = _null(header, length), start
        headers.append((name, value))
    return tuple(headers), position


def _null(header: BatchHeader, length: int) -> bytes | None:
    """Return None for the length -1. Raises CorruptError for any other length."""
    if length != -1:
        raise _corrupt(header, "a length is below -1", ">= -1", length)
    return None


def _corrupt(header: BatchHeader, message: str, expected: object, found: object) -> CorruptError:
    return CorruptError(message, base_offset=header.base_offset, expected=expected, found=found)
