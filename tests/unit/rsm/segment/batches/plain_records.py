"""Decodes a batch field by field, in the order of the format: the reference for faster decoders."""

from __future__ import annotations

from rsm.segment.batches.batch import HEADER_BYTES, BatchHeader, TimestampType
from rsm.segment.batches.compression import decompress
from rsm.segment.batches.records import Headers, Record
from rsm.segment.batches.varint import read_varint, read_varlong
from rsm.segment.errors import CorruptError


def plain_records(header: BatchHeader, batch: bytes) -> tuple[Record, ...]:
    """Return the records of a user's batch v2.

    Raises CorruptError for bytes that contradict the header.
    """
    payload = batch[HEADER_BYTES:]
    data = decompress(header.compression_id, payload) if payload else b""
    records, position = [], 0
    for _ in range(header.record_count):
        if position >= len(data):
            raise CorruptError("fewer records than the header says")
        record, position = _record(header, data, position)
        records.append(record)
    if position != len(data):
        raise CorruptError("bytes after the last record")
    return tuple(records)


def _record(header: BatchHeader, data: bytes, position: int) -> tuple[Record, int]:
    length, start = read_varint(data, position)
    end = start + length
    if not start < end <= len(data):
        raise CorruptError("record out of bounds")
    delta_ms, position = read_varlong(data, start + 1)
    delta, position = read_varint(data, position)
    key, position = _bytes(data, position)
    value, position = _bytes(data, position)
    headers, position = _headers(data, position)
    if position != end or not 0 <= delta <= header.last_offset_delta:
        raise CorruptError("not the record that it says")
    is_create_time = header.timestamp_type is TimestampType.CREATE_TIME
    return (
        Record(
            offset=header.base_offset + delta,
            timestamp_ms=header.base_timestamp_ms + delta_ms
            if is_create_time
            else header.max_timestamp_ms,
            timestamp_type=header.timestamp_type,
            key=key,
            value=value,
            headers=headers,
        ),
        end,
    )


def _headers(data: bytes, position: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= len(data):
        raise CorruptError("no number of headers")
    headers = []
    for _ in range(count):
        name, position = _bytes(data, position)
        if name is None:
            raise CorruptError("header without a name")
        value, position = _bytes(data, position)
        headers.append((name.decode("utf-8", errors="replace"), value))
    return tuple(headers), position


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length == -1:
        return None, position
    if not 0 <= length <= len(data) - position:
        raise CorruptError("bytes out of bounds")
    return data[position : position + length], position + length
