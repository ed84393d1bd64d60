"""The parts of a data object in block format v1 (PIP-17): block headers, entries, padding.

A data object is a sequence of blocks. All numbers are big-endian:

    block header, 128 bytes            entry                       padding
    0   magic FB DB AB CB              0   length   i32, >= 0      FE DC DE AD, repeated from the
    4   header length    i64, 128      4   entry id i64            last entry's end to the block's
    12  block length     i64           12  data                    end, which may cut it short
    20  first entry id   i64
    28  zeros

The block length includes the header. An entry's length is never negative, so an entry cannot begin
with the first byte of padding or of the next block's magic. The decoder ignores the bytes after 28,
which the format reserves for later versions. Pure.
Source: Pulsar's DataBlockHeaderImpl and BlockAwareSegmentInputStreamImpl.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from rsm.segment.errors import CorruptError

HEADER_BYTES = 128
ENTRY_HEADER = struct.Struct(">iq")
ENTRY_HEADER_BYTES = ENTRY_HEADER.size
# A block that holds one entry without data.
MIN_BLOCK_BYTES = HEADER_BYTES + ENTRY_HEADER_BYTES
DEFAULT_BLOCK_BYTES = 64 << 20
# Pulsar stores a block's length in an int.
MAX_BLOCK_BYTES = (1 << 31) - 1
MAX_ENTRY_BYTES = MAX_BLOCK_BYTES - MIN_BLOCK_BYTES

_MAGIC = 0xFBDBABCB
_HEADER = struct.Struct(">Iqqq")
MIN_HEADER_BYTES = _HEADER.size
_PADDING = bytes.fromhex("fedcdead")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHeader:
    """The header of a block; `block_bytes` includes the header."""

    block_bytes: int
    first_entry_id: int
    header_bytes: int = HEADER_BYTES


def encode_header(header: BlockHeader) -> bytes:
    """Encode a block header, padded with zeros."""
    fields = _HEADER.pack(_MAGIC, header.header_bytes, header.block_bytes, header.first_entry_id)
    return fields.ljust(header.header_bytes, b"\x00")


def decode_header(content: bytes | memoryview, *, name: str, position: int) -> BlockHeader:
    """Decode the header at the beginning of `content`, at `position` of the object `name`.

    Raises CorruptError if there is none.
    """
    if len(content) < _HEADER.size:
        raise _corrupt("block header cut short", name, position, _HEADER.size, len(content))
    magic, header_bytes, block_bytes, first_entry_id = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise _corrupt(
            "not a block: another magic", name, position, f"{_MAGIC:08x}", f"{magic:08x}"
        )
    if not _HEADER.size <= header_bytes <= block_bytes:
        expected = f"{_HEADER.size}..{block_bytes}"
        raise _corrupt("block header length", name, position + 4, expected, header_bytes)
    if first_entry_id < 0:
        raise _corrupt("negative entry id", name, position + 20, ">= 0", first_entry_id)
    return BlockHeader(
        block_bytes=block_bytes, first_entry_id=first_entry_id, header_bytes=header_bytes
    )


def padding(length_bytes: int) -> bytes:
    """Return the bytes between a block's last entry and its end."""
    return (_PADDING * -(-length_bytes // len(_PADDING)))[:length_bytes]


def check_padding(content: bytes | memoryview, *, name: str, position: int, phase: int = 0) -> None:
    """Check that `content`, at `position`, is padding that continues after `phase` bytes.

    Raises CorruptError with the position of the first wrong byte.
    """
    phase %= len(_PADDING)
    expected = padding(len(content) + phase)[phase:]
    if content == expected:
        return
    wrong = next(i for i, byte in enumerate(content) if byte != expected[i])
    raise _corrupt(
        "padding that is none",
        name,
        position + wrong,
        f"{expected[wrong]:02x}",
        f"{content[wrong]:02x}",
    )


def _corrupt(
    message: str, name: str, position: int, expected: object, found: object
) -> CorruptError:
    return CorruptError(message, object=name, position=position, expected=expected, found=found)
