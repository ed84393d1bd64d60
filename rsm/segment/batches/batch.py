"""Parses the headers of record batches, finds the batches' bounds, and verifies their CRCs.

Covers record batches v2 (KIP-98) and their predecessors (magic 0 and 1), which old logs still
contain. This module does not know records, codecs or files. All fields are big-endian:

    v2, 61 bytes                              magic 0 and 1
    0   base offset            i64            0   offset       i64
    8   remaining length       i32            8   remaining length   i32
    12  partition leader epoch i32            12  crc          u32, CRC-32 of bytes 16 to end
    16  magic                  i8             16  magic        i8
    17  crc   u32, CRC-32C of bytes 21 to end 17  attributes   i8
    21  attributes             i16            18  timestamp    i64, magic 1 only
    23  last offset delta      i32                key          i32 length, bytes
    27  base timestamp         i64                value        i32 length, bytes
    35  max timestamp          i64
    43  producer id            i64
    51  producer epoch         i16
    53  base sequence          i32
    57  record count           i32

Attributes: bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 the base timestamp
is the delete horizon (KIP-534). Source: org.apache.kafka.common.record.DefaultRecordBatch.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from crc32c import crc32c

from rsm.segment.errors import CorruptError

LOG_OVERHEAD_BYTES = 12
MAGIC_POSITION = 16  # The magic has this position in every version.
PREFIX_BYTES = 17
HEADER_BYTES = 61
CRC_COVERED_FROM = 21
NO_TIMESTAMP = -1
NO_EPOCH = -1

# By default, a broker accepts no larger request (socket.request.max.bytes), so no larger batch.
MAX_BATCH_BYTES = 104_857_600

V2_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">8xi")
_LEGACY_HEADER = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
LEGACY_CRC_COVERED_FROM = 16
# Magic 0 and 1: log overhead, crc, magic, attributes, timestamp (magic 1), and two null lengths.
_MIN_BYTES = {0: 26, 1: 34, 2: HEADER_BYTES}
_CODEC_MASK = 0x07


class TimestampType(IntEnum):
    """Represents the origin of a batch's timestamps; the value is the bit in the attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """Represents the header of one batch. `length_bytes` includes the log overhead.

    A message of magic 0 or 1 counts as a batch without an epoch, producer or sequence (-1). If it
    is compressed, its base offset is the offset of its last record. Its record count is then -1,
    because only decompression shows the number.
    """

    base_offset: int
    length_bytes: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Return the first offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression_id(self) -> int:
        """Return the codec's number; see `rsm.segment.batches.compression.CompressionType`."""
        return self.attributes & _CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x20)


def batch_length_bytes(
    buffer: memoryview, position: int, *, base_position: int = 0, max_bytes: int = MAX_BATCH_BYTES
) -> int | None:
    """Return the size of the batch at `position`; None if too few bytes are available.

    Raises CorruptError for an impossible size or magic. The batch itself may be incomplete.
    `base_position` is the position of `buffer` in its log; errors name positions in the log.
    """
    if len(buffer) - position < PREFIX_BYTES:
        return None
    size = _LENGTH.unpack_from(buffer, position)[0] + LOG_OVERHEAD_BYTES
    magic = buffer[position + MAGIC_POSITION]
    where = base_position + position
    if magic not in _MIN_BYTES:
        raise CorruptError(
            "the batch's magic is unknown", position=where, expected="0, 1 or 2", found=magic
        )
    if not _MIN_BYTES[magic] <= size <= max_bytes:
        bounds = f"{_MIN_BYTES[magic]}..{max_bytes}"
        raise CorruptError(
            "the batch size is out of bounds", position=where, expected=bounds, found=size
        )
    return int(size)


def parse_header(buffer: memoryview, position: int = 0, *, base_position: int = 0) -> BatchHeader:
    """Parse the header of the batch at `position`; the rest of the batch may be incomplete.

    Raises CorruptError if the header is incomplete or invalid. Does not check the CRC.
    """
    size = batch_length_bytes(buffer, position, base_position=base_position)
    where = base_position + position
    magic = 0 if size is None else buffer[position + MAGIC_POSITION]
    if size is None or len(buffer) - position < _MIN_BYTES[magic]:
        raise CorruptError(
            "the batch header is truncated",
            position=where,
            expected=_MIN_BYTES[magic],
            found=len(buffer) - position,
        )
    if magic < 2:
        return _parse_legacy(buffer, position, size, where)
    (base, _, epoch, _, crc, attributes, delta, *rest) = V2_HEADER.unpack_from(buffer, position)
    base_timestamp, max_timestamp, producer_id, producer_epoch, sequence, count = rest
    if base < 0 or delta < 0 or count < 0:
        found = f"base offset {base}, last offset delta {delta}, record count {count}"
        raise CorruptError(
            "a field of the batch header is negative", position=where, expected=">= 0", found=found
        )
    return BatchHeader(
        base_offset=base,
        length_bytes=size,
        partition_leader_epoch=epoch,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=delta,
        base_timestamp_ms=base_timestamp,
        max_timestamp_ms=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        record_count=count,
    )


def scan_batches(
    buffer: memoryview, *, base_position: int = 0
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position in the log, header) of each whole batch. `buffer` begins with a batch.

    Ends at the first incomplete batch. The consumed part ends at position + length_bytes of the
    last result. Raises CorruptError at an invalid batch. Does not check CRCs.
    """
    position = 0
    while True:
        size = batch_length_bytes(buffer, position, base_position=base_position)
        if size is None or position + size > len(buffer):
            return
        yield base_position + position, parse_header(buffer, position, base_position=base_position)
        position += size


def verify_crc(batch: memoryview, *, position: int = 0) -> BatchHeader:
    """Check the CRC of `batch`, which is exactly one batch; return its header.

    Raises CorruptError, which names `position`. Magic 2 has a CRC-32C, magic 0 and 1 a CRC-32.
    """
    header = parse_header(batch, base_position=position)
    if len(batch) != header.length_bytes:
        expected, found = header.length_bytes, len(batch)
        raise CorruptError(
            "the bytes are not one whole batch", position=position, expected=expected, found=found
        )
    if header.magic < 2:
        found = zlib.crc32(batch[LEGACY_CRC_COVERED_FROM:])
    else:
        found = crc32c(batch[CRC_COVERED_FROM:])
    if found != header.crc:
        raise CorruptError(
            "the batch's CRC is wrong", position=position, expected=header.crc, found=found
        )
    return header


def _parse_legacy(buffer: memoryview, position: int, size: int, where: int) -> BatchHeader:
    offset, _, crc, magic, attributes = _LEGACY_HEADER.unpack_from(buffer, position)
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, position + _LEGACY_HEADER.size)
    if offset < 0:
        raise CorruptError("the offset is negative", position=where, expected=">= 0", found=offset)
    return BatchHeader(
        base_offset=offset,
        length_bytes=size,
        partition_leader_epoch=NO_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=-1 if attributes & _CODEC_MASK else 1,
    )
