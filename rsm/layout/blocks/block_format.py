"""Defines the parts of a data object in Pulsar's block formats: headers, entries, padding. Pure.

A data object is a sequence of blocks. All numbers are big-endian:

    block header, 128 bytes            entry                       padding
    0   magic                          0   length   i32, >= 0      FE DC DE AD, repeated from the
    4   header length    i64, 128      4   entry id i64            last entry's end to the block's
    12  block length     i64           12  data                    end, which may cut it short
    20  first entry id   i64
    28  ledger id        i64, in v2 only
        zeros

The magic is FB DB AB CB in v1 (PIP-17) and 26 A6 6D 32 in v2 (PIP-76). The block length includes
the header. An entry's length is never negative, so an entry cannot begin with the first byte of
padding or of v1's magic. An entry can begin with v2's magic. The decoder ignores the zeros, which
the format reserves for later versions.
Source: Pulsar's DataBlockHeaderImpl, StreamingDataBlockHeaderImpl and BufferedOffloadStream.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from rsm.segment.errors import CorruptError

HEADER_BYTES = 128
ENTRY_HEADER = struct.Struct(">iq")
ENTRY_HEADER_BYTES = ENTRY_HEADER.size
# The length of a block with one empty entry.
MIN_BLOCK_BYTES = HEADER_BYTES + ENTRY_HEADER_BYTES
# With smaller blocks, the index of the largest log segment (2 GiB) could exceed its limit. Entries
# that add up to one block size take at most 2 blocks. In the index, a block and its log point take
# 52 bytes.
MIN_LOG_BLOCK_BYTES = 8 << 10
DEFAULT_BLOCK_BYTES = 64 << 20
# Pulsar stores a block's length in an int.
MAX_BLOCK_BYTES = (1 << 31) - 1
MAX_ENTRY_BYTES = MAX_BLOCK_BYTES - MIN_BLOCK_BYTES
MAX_ID = (1 << 63) - 1

_PREFIX = struct.Struct(">Iqqq")
_LEDGER_ID = struct.Struct(">q")
PADDING = bytes.fromhex("fedcdead")


class BlockFormat(Enum):
    """Pulsar's block formats; the value is the magic of their blocks."""

    V1 = 0xFBDBABCB  # PIP-17: an object contains one ledger
    V2 = 0x26A66D32  # PIP-76: an object can contain several ledgers

    @property
    def index_magic(self) -> int:
        """Return the magic of the index object."""
        return 0xDE47DE47 if self is BlockFormat.V1 else 0x3D1FB0BC

    @property
    def min_header_bytes(self) -> int:
        """Return the length of a block header without the zeros."""
        return _PREFIX.size + (_LEDGER_ID.size if self is BlockFormat.V2 else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHeader:
    """Represents a block's header. `block_bytes` includes it; `ledger_id` is None in v1."""

    block_bytes: int
    first_entry_id: int
    header_bytes: int = HEADER_BYTES
    ledger_id: int | None = None

    @property
    def format(self) -> BlockFormat:
        return BlockFormat.V1 if self.ledger_id is None else BlockFormat.V2


def encode_header(header: BlockHeader) -> bytes:
    """Encode a block header, padded with zeros."""
    fields = _PREFIX.pack(
        header.format.value, header.header_bytes, header.block_bytes, header.first_entry_id
    )
    if header.ledger_id is not None:
        fields += _LEDGER_ID.pack(header.ledger_id)
    return fields.ljust(header.header_bytes, b"\x00")


def decode_header(
    content: bytes | memoryview,
    *,
    name: str,
    position: int,
    block_format: BlockFormat = BlockFormat.V1,
) -> BlockHeader:
    """Decode the header at the start of `content`, which begins at `position` of object `name`.

    Raises CorruptError if the header is missing or invalid.
    """
    least_bytes = block_format.min_header_bytes
    if len(content) < least_bytes:
        raise _corrupt("the block header is truncated", name, position, least_bytes, len(content))
    magic, header_bytes, block_bytes, first_entry_id = _PREFIX.unpack_from(content)
    if magic != block_format.value:
        raise _corrupt(
            "no block begins here: the magic is wrong",
            name,
            position,
            f"{block_format.value:08x}",
            f"{magic:08x}",
        )
    if not least_bytes <= header_bytes <= block_bytes:
        expected = f"{least_bytes}..{block_bytes}"
        raise _corrupt(
            "the block header length is invalid", name, position + 4, expected, header_bytes
        )
    if first_entry_id < 0:
        raise _corrupt("the entry id is negative", name, position + 20, ">= 0", first_entry_id)
    ledger_id = None
    if block_format is BlockFormat.V2:
        (ledger_id,) = _LEDGER_ID.unpack_from(content, _PREFIX.size)
        if ledger_id < 0:
            raise _corrupt("the ledger id is negative", name, position + 28, ">= 0", ledger_id)
    return BlockHeader(
        block_bytes=block_bytes,
        first_entry_id=first_entry_id,
        header_bytes=header_bytes,
        ledger_id=ledger_id,
    )


def begins_padding(content: bytes | memoryview) -> bool:
    """Return whether `content`, the rest of a block after an entry, contains no further entry."""
    return len(content) < ENTRY_HEADER_BYTES or content[: len(PADDING)] == PADDING


def padding(length_bytes: int) -> bytes:
    """Return the bytes between a block's last entry and its end."""
    return (PADDING * -(-length_bytes // len(PADDING)))[:length_bytes]


def check_padding(content: bytes | memoryview, *, name: str, position: int, phase: int = 0) -> None:
    """Check that `content` is padding at `position`; `phase` bytes of the same padding precede it.

    Raises CorruptError with the position of the first wrong byte.
    """
    phase %= len(PADDING)
    expected = padding(len(content) + phase)[phase:]
    if content == expected:
        return
    wrong = next(i for i, byte in enumerate(content) if byte != expected[i])
    raise _corrupt(
        "the padding is invalid",
        name,
        position + wrong,
        f"{expected[wrong]:02x}",
        f"{content[wrong]:02x}",
    )


def _corrupt(
    message: str, name: str, position: int, expected: object, found: object
) -> CorruptError:
    return CorruptError(message, object=name, position=position, expected=expected, found=found)
