"""Decompresses the records of batches, up to a limit of decompressed bytes.

Covers Kafka's codec numbers and framings: gzip, snappy (in the blocks of snappy-java, or raw), LZ4
frames and zstd frames. This module does not know the meaning of the bytes. Source:
org.apache.kafka.common.record.CompressionType; org.xerial.snappy.SnappyOutputStream.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum

import cramjam

from rsm.segment.errors import CorruptError, UnsupportedError

# An incompressible batch of socket.request.max.bytes fits, and so do most compressible batches.
MAX_DECOMPRESSED_BYTES = 134_217_728

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # magic, version i32, lowest compatible version i32
_BLOCK_LENGTH = struct.Struct(">i")
_MIN_GUESS_BYTES = 65_536
_GUESS_FACTOR = 4


class CompressionType(IntEnum):
    """Represents the codec's number in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(
    compression_id: int, data: bytes | memoryview, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Return the plain bytes of `data`; at most `max_bytes` if `data` is compressed.

    Raises CorruptError for invalid data or a larger result, UnsupportedError for an unknown codec.
    For compressed data, allocates at most twice `max_bytes`, whatever size the data declares.
    """
    match compression_id:
        case CompressionType.NONE:
            return bytes(data)
        case CompressionType.GZIP:
            return _decompress_stream(cramjam.gzip.decompress_into, data, max_bytes)
        case CompressionType.SNAPPY:
            return _decompress_snappy(bytes(data), max_bytes)
        case CompressionType.LZ4:
            return _decompress_stream(cramjam.lz4.decompress_into, data, max_bytes)
        case CompressionType.ZSTD:
            return _decompress_stream(cramjam.zstd.decompress_into, data, max_bytes)
        case _:
            raise UnsupportedError(
                "the batch's compression is unknown", compression_id=compression_id
            )


def _decompress_stream(
    decompress_into: Callable[[bytes | memoryview, bytearray], int],
    data: bytes | memoryview,
    max_bytes: int,
) -> bytes:
    """Decompress data that declares no size, into ever larger buffers up to the limit.

    The library reports a small buffer and invalid data with the same error, so both cases fail only
    at the limit.
    """
    size = min(max_bytes, max(_MIN_GUESS_BYTES, _GUESS_FACTOR * len(data)))
    while True:
        plain = bytearray(size)
        try:
            length = decompress_into(data, plain)
        except cramjam.DecompressionError as error:
            if size < max_bytes:
                size = min(max_bytes, _GUESS_FACTOR * size)
                continue
            raise _not_decompressed(data, max_bytes) from error
        return bytes(memoryview(plain)[:length])


def _decompress_snappy(data: bytes, max_bytes: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, max_bytes)
    plain = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        if position + _BLOCK_LENGTH.size > len(data):
            raise CorruptError("a snappy block is truncated", position=position)
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        start = position + _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - start:
            raise CorruptError(
                "a snappy block is out of bounds", position=position, found_bytes=length
            )
        plain += _decompress_snappy_block(data[start : start + length], max_bytes - len(plain))
        position = start + length
    return bytes(plain)


def _decompress_snappy_block(block: bytes, max_bytes: int) -> bytes:
    """Check the declared size of a raw snappy block against the limit, and decompress it."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > max_bytes:
            raise _not_decompressed(block, max_bytes)
        plain = bytearray(size)
        length = cramjam.snappy.decompress_raw_into(block, plain)
    except cramjam.DecompressionError as error:
        raise _not_decompressed(block, max_bytes) from error
    return bytes(memoryview(plain)[:length])


def _not_decompressed(data: bytes | memoryview, max_bytes: int) -> CorruptError:
    return CorruptError(
        "compressed records are corrupt or too large",
        compressed_bytes=len(data),
        max_decompressed_bytes=max_bytes,
    )
