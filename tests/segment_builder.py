"""Builds segments for tests: batches, logs and indexes, byte for byte as Kafka writes them.

`rsm.segment` reads these formats. Every function is pure.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cramjam
from crc32c import crc32c

from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    V2_HEADER,
    TimestampType,
    scan_batches,
)
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.index_builder import INDEX_INTERVAL_BYTES, IndexBuilder
from rsm.segment.batches.records import ControlType, Record
from rsm.segment.indexes import TransactionIndex
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.ranges import OffsetRange
from tests.varints import encode_varint, encode_varlong

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_BYTES = 32_768


def record(
    offset: int,
    value: bytes | None = b"value",
    *,
    key: bytes | None = b"key",
    timestamp_ms: int = 1_700_000_000_000,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Record:
    """Return a record with default values for fields that a test does not set."""
    return Record(
        offset=offset,
        timestamp_ms=timestamp_ms,
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=tuple(headers),
    )


def records(count: int, *, base_offset: int = 0, value_bytes: int = 100) -> tuple[Record, ...]:
    """Return `count` records of consecutive offsets, each a millisecond after the previous one."""
    return tuple(
        record(
            base_offset + n,
            (b"%020d" % (base_offset + n)).ljust(value_bytes, b"."),
            key=b"key-%d" % (base_offset + n),
            timestamp_ms=1_700_000_000_000 + base_offset + n,
        )
        for n in range(count)
    )


def build_batch(
    content: Sequence[Record],
    *,
    codec: CompressionType = CompressionType.NONE,
    base_offset: int | None = None,
    last_offset: int | None = None,
    leader_epoch: int = 0,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    compress: Callable[[CompressionType, bytes], bytes] | None = None,
) -> bytes:
    """Return a batch v2 of `content`, whose offsets ascend but may have gaps from compaction.

    `base_offset` and `last_offset` are those of the content unless given. With LOG_APPEND_TIME
    the batch's maximum is `append_time_ms`. `compress` replaces the codec's usual framing.
    """
    base = content[0].offset if base_offset is None else base_offset
    last = content[-1].offset if last_offset is None else last_offset
    base_ms = content[0].timestamp_ms if content else -1
    base_ms = base_ms if delete_horizon_ms is None else delete_horizon_ms
    max_ms = max((each.timestamp_ms for each in content), default=-1)
    max_ms = max_ms if append_time_ms is None else append_time_ms
    payload = b"".join(encode_record(each, base, base_ms) for each in content)
    if payload:
        payload = (compress or compress_payload)(codec, payload)
    attributes = (
        codec
        | timestamp_type << 3
        | is_transactional << 4
        | is_control << 5
        | (delete_horizon_ms is not None) << 6
    )
    return pack_batch(
        payload,
        base_offset=base,
        last_offset=last,
        leader_epoch=leader_epoch,
        attributes=attributes,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_ms,
        producer=(producer_id, producer_epoch, base_sequence),
        record_count=len(content),
    )


def pack_batch(
    payload: bytes,
    *,
    base_offset: int = 0,
    last_offset: int = 0,
    leader_epoch: int = 0,
    attributes: int = 0,
    base_timestamp_ms: int = 0,
    max_timestamp_ms: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    record_count: int = 0,
) -> bytes:
    """Return a batch v2 around any payload, with the right length and CRC."""
    fields = [
        base_offset,
        HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload),
        leader_epoch,
        2,
        0,
        attributes,
        last_offset - base_offset,
        base_timestamp_ms,
        max_timestamp_ms,
        *producer,
        record_count,
    ]
    covered = V2_HEADER.pack(*fields)[CRC_COVERED_FROM:] + payload
    fields[4] = crc32c(covered)
    return V2_HEADER.pack(*fields)[:CRC_COVERED_FROM] + covered


def build_control_batch(
    offset: int,
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    leader_epoch: int = 0,
    timestamp_ms: int = 1_700_000_000_000,
) -> bytes:
    """Return the marker that ends a producer's transaction."""
    marker = record(
        offset,
        struct.pack(">hi", 0, coordinator_epoch),
        key=struct.pack(">hh", 0, control_type),
        timestamp_ms=timestamp_ms,
    )
    return build_batch(
        [marker],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def build_legacy_message(
    offset: int,
    value: bytes | None,
    *,
    magic: int,
    key: bytes | None = None,
    timestamp_ms: int = 1_500_000_000_000,
    attributes: int = 0,
) -> bytes:
    """Return a message of magic 0 or 1; if compressed, `value` is the compressed message set."""
    body = struct.pack(">bb", magic, attributes)
    body += struct.pack(">q", timestamp_ms) if magic == 1 else b""
    for field in (key, value):
        body += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def encode_record(content: Record, base_offset: int, base_timestamp_ms: int) -> bytes:
    """Return a record as in a batch v2, with its length first."""
    body = bytearray(b"\x00")
    body += encode_varlong(content.timestamp_ms - base_timestamp_ms)
    body += encode_varint(content.offset - base_offset)
    body += _nullable(content.key) + _nullable(content.value)
    body += encode_varint(len(content.headers))
    for name, value in content.headers:
        body += _nullable(name.encode()) + _nullable(value)
    return encode_varint(len(body)) + bytes(body)


def compress_payload(codec: CompressionType, payload: bytes) -> bytes:
    """Compress as Kafka's Java clients do."""
    match codec:
        case CompressionType.NONE:
            return payload
        case CompressionType.GZIP:
            return bytes(cramjam.gzip.compress(payload))
        case CompressionType.SNAPPY:
            return compress_xerial(payload)
        case CompressionType.LZ4:
            return bytes(cramjam.lz4.compress(payload))
        case CompressionType.ZSTD:
            return bytes(cramjam.zstd.compress(payload))


def compress_xerial(payload: bytes) -> bytes:
    """Compress with Snappy, in the blocks of snappy-java."""
    framed = bytearray(XERIAL_HEADER)
    for start in range(0, len(payload), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(payload[start : start + XERIAL_BLOCK_BYTES]))
        framed += struct.pack(">i", len(block)) + block
    return bytes(framed)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSegment:
    """A rolled segment as a broker leaves it: the bytes of its log and of its indexes."""

    offsets: OffsetRange
    log: bytes
    offset_index: bytes
    time_index: bytes
    transaction_index: bytes


def build_segment(
    batches: Sequence[bytes],
    *,
    base_offset: int | None = None,
    index_interval_bytes: int = INDEX_INTERVAL_BYTES,
    aborted: Sequence[AbortedTransaction] = (),
) -> BuiltSegment:
    """Return a segment of `batches`; its base offset is that of the first unless given.

    A segment without batches, because compaction removed all, has one offset.
    """
    log = b"".join(batches)
    headers = [header for _, header in scan_batches(memoryview(log))]
    base = headers[0].base_offset if base_offset is None else base_offset
    builder = IndexBuilder(base_offset=base, index_interval_bytes=index_interval_bytes)
    for header in headers:
        builder.append(header)
    end = headers[-1].next_offset if headers else base + 1
    return BuiltSegment(
        offsets=OffsetRange(start_offset=base, end_offset=end),
        log=log,
        offset_index=builder.offset_index().to_bytes(),
        time_index=builder.time_index().to_bytes(),
        transaction_index=TransactionIndex(transactions=tuple(aborted)).to_bytes(),
    )


def build_batches(
    batch_count: int,
    *,
    base_offset: int = 0,
    records_per_batch: int = 10,
    value_bytes: int = 100,
    leader_epoch: int = 0,
    codec: CompressionType = CompressionType.NONE,
) -> tuple[bytes, ...]:
    """Return consecutive batches of equal shape."""
    return tuple(
        build_batch(
            records(
                records_per_batch,
                base_offset=base_offset + n * records_per_batch,
                value_bytes=value_bytes,
            ),
            leader_epoch=leader_epoch,
            codec=codec,
        )
        for n in range(batch_count)
    )


def _nullable(field: bytes | None) -> bytes:
    return encode_varint(-1) if field is None else encode_varint(len(field)) + field
