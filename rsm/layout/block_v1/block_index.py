"""The index object of an offloaded ledger in block format v1 (PIP-17).

All numbers are big-endian:

    0   magic DE 47 DE 47
    4   index length          i32, the whole object
    8   data object length    i64
    16  block header length   i64, 128
    24  block count           i32
    28  metadata length       i32
    32  metadata              protobuf, rsm.layout.block_v1.ledger_metadata
        then for each block:  first entry id i64, part i32 (from 1), position of the block i64

Positions are those of block headers; a block's entries begin after its header. Pulsar's offloader
stops at an entry larger than its blocks but reports success: such an index names one block more
than its data length covers. This decoder accepts it as a ledger without the entries from that block
on. Pure. Source: Pulsar's OffloadIndexBlockImpl.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from rsm.layout.block_v1.block_format import HEADER_BYTES, MIN_HEADER_BYTES
from rsm.layout.block_v1.ledger_metadata import (
    LedgerMetadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from rsm.segment.errors import CorruptError

# An upload has at most 10 000 parts; the rest is for the metadata.
MAX_INDEX_BYTES = 64 << 20

_MAGIC = 0xDE47DE47
_HEADER = struct.Struct(">IiqqiI")
_BLOCK = struct.Struct(">qiq")
INDEX_HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedBlock:
    """One block: its first entry, its part of the upload, and its position."""

    first_entry_id: int
    part: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockIndex:
    """A ledger's index. `blocks` is not empty and ascends by entry id and by position."""

    metadata: LedgerMetadata
    data_bytes: int
    blocks: tuple[IndexedBlock, ...]
    header_bytes: int = HEADER_BYTES

    @property
    def first_entry_id(self) -> int:
        return self.blocks[0].first_entry_id

    @property
    def last_entry_id(self) -> int:
        """The last entry of the ledger, written or not."""
        return self.metadata.last_entry_id

    @property
    def end_entry_id(self) -> int:
        """The id after the last entry that was written."""
        last = self.blocks[-1]
        return last.first_entry_id if last.position == self.data_bytes else self.last_entry_id + 1

    def block_number(self, entry_id: int) -> int:
        """Return the number of an entry's block, counted from 0."""
        return bisect_right(self.blocks, entry_id, key=lambda block: block.first_entry_id) - 1

    def block_end_position(self, number: int) -> int:
        """Return the position of a block's end, including its padding."""
        following = number + 1
        return self.blocks[following].position if following < len(self.blocks) else self.data_bytes

    def block_end_entry_id(self, number: int) -> int:
        """Return the id of the first entry after the block."""
        following = number + 1
        if following < len(self.blocks):
            return self.blocks[following].first_entry_id
        return self.end_entry_id


def encode_index(index: BlockIndex) -> bytes:
    """Encode an index object."""
    metadata = encode_ledger_metadata(index.metadata)
    length_bytes = _HEADER.size + len(metadata) + _BLOCK.size * len(index.blocks)
    header = _HEADER.pack(
        _MAGIC, length_bytes, index.data_bytes, index.header_bytes, len(index.blocks), len(metadata)
    )
    blocks = (_BLOCK.pack(b.first_entry_id, b.part, b.position) for b in index.blocks)
    return b"".join((header, metadata, *blocks))


def decode_index(content: bytes, *, name: str) -> BlockIndex:
    """Decode the index object `name`. CorruptError if it is invalid or inconsistent."""
    data_bytes, header_bytes, metadata_bytes = _unpack_header(content, name, len(content))
    blocks_position = _HEADER.size + metadata_bytes
    try:
        metadata = decode_ledger_metadata(content[_HEADER.size : blocks_position])
    except CorruptError as error:
        context = {"expected": "ledger metadata", "found": "other bytes"} | dict(error.context)
        raise CorruptError(error.message, object=name, position=_HEADER.size, **context) from error
    blocks = tuple(
        IndexedBlock(first_entry_id=first_entry_id, part=part, position=position)
        for first_entry_id, part, position in _BLOCK.iter_unpack(content[blocks_position:])
    )
    index = BlockIndex(
        metadata=metadata, data_bytes=data_bytes, blocks=blocks, header_bytes=header_bytes
    )
    _check_blocks(index, name, blocks_position)
    return index


def _unpack_header(content: bytes, name: str, object_bytes: int) -> tuple[int, int, int]:
    if len(content) < _HEADER.size:
        raise _corrupt("index cut short", name, 0, f">= {_HEADER.size} bytes", len(content))
    magic, length, data_bytes, header_bytes, block_count, metadata_bytes = _HEADER.unpack_from(
        content
    )
    if magic != _MAGIC:
        raise _corrupt("not an index: another magic", name, 0, f"{_MAGIC:08x}", f"{magic:08x}")
    if length != object_bytes or length > MAX_INDEX_BYTES:
        expected = f"{object_bytes}, at most {MAX_INDEX_BYTES}"
        raise _corrupt("the index has a wrong length", name, 4, expected, length)
    if data_bytes < 0:
        raise _corrupt("negative data length", name, 8, ">= 0", data_bytes)
    if not MIN_HEADER_BYTES <= header_bytes <= MAX_INDEX_BYTES:
        raise _corrupt("block header length", name, 16, HEADER_BYTES, header_bytes)
    if block_count < 1:
        raise _corrupt("index without blocks", name, 24, ">= 1", block_count)
    if _HEADER.size + metadata_bytes + _BLOCK.size * block_count != length:
        expected = f"{length - _HEADER.size} bytes of metadata and blocks"
        found = f"{metadata_bytes} + {_BLOCK.size} * {block_count}"
        raise _corrupt("index length is not that of its parts", name, 24, expected, found)
    return data_bytes, header_bytes, metadata_bytes


def _check_blocks(index: BlockIndex, name: str, blocks_position: int) -> None:
    first = index.blocks[0]
    if first.first_entry_id < 0:
        raise _corrupt("negative entry id", name, blocks_position, ">= 0", first.first_entry_id)
    if first.position != 0:
        raise _corrupt("first block's position", name, blocks_position + 12, 0, first.position)
    for number, (before, block) in enumerate(pairwise(index.blocks), start=1):
        at = blocks_position + number * _BLOCK.size
        if block.first_entry_id <= before.first_entry_id:
            expected = f"> {before.first_entry_id}"
            raise _corrupt("entry ids do not ascend", name, at, expected, block.first_entry_id)
        least = before.position + index.header_bytes
        # The last block may begin at the end of the data: none of it was written.
        if not least <= block.position <= index.data_bytes:
            expected = f"{least}..{index.data_bytes}"
            raise _corrupt("block beyond the data", name, at + 12, expected, block.position)
    last = index.blocks[-1]
    at = blocks_position + _BLOCK.size * (len(index.blocks) - 1)
    if last.first_entry_id > index.last_entry_id:
        expected = f"<= {index.last_entry_id}"
        raise _corrupt("block after the last entry", name, at, expected, last.first_entry_id)
    left_bytes = index.data_bytes - last.position
    if 0 < left_bytes < index.header_bytes:
        expected = f">= {index.header_bytes} bytes of a block"
        raise _corrupt("data ends within a block header", name, 8, expected, left_bytes)


def _corrupt(message: str, name: str, at: int, expected: object, found: object) -> CorruptError:
    return CorruptError(message, object=name, position=at, expected=expected, found=found)
