"""Encodes and decodes the index object of an offloaded ledger in block format v1 (PIP-17). Pure.

**Data loss in Pulsar:** its offloader stops at an entry larger than its blocks, but reports
success. The index then names a block that begins at the end of the data. This decoder reads such a
ledger up to the end of the data.

All numbers are big-endian:

    0   magic DE 47 DE 47
    4   index length          i32, the whole object
    8   data object length    i64
    16  block header length   i64, 128
    24  block count           i32
    28  metadata length       i32
    32  metadata              protobuf, rsm.layout.blocks.ledger_metadata
        then for each block:  first entry id i64, part i32 (from 1), position of the block i64

Positions are those of block headers; a block's entries begin after its header.
Source: Pulsar's OffloadIndexBlockImpl.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from rsm.layout.blocks.block_format import BlockFormat
from rsm.layout.blocks.block_sequence import (
    INDEXED_BLOCK_BYTES,
    BlockSequence,
    check_blocks,
    corrupt_index,
    decode_blocks,
    encode_blocks,
    require_index_fits,
    unpack_index_header,
)
from rsm.layout.blocks.ledger_metadata import (
    LedgerMetadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from rsm.segment.errors import CorruptError

_HEADER = struct.Struct(">IiqqiI")
INDEX_HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockIndex(BlockSequence):
    """Represents a decoded index object: the blocks and the metadata of one ledger."""

    metadata: LedgerMetadata

    @property
    def last_entry_id(self) -> int:
        """Return the id of the ledger's last entry, even if that entry was never written."""
        return self.metadata.last_entry_id

    @property
    def end_position(self) -> int:
        return self.data_bytes

    @property
    def end_entry_id(self) -> int:
        """Return the id after the last written entry."""
        last = self.blocks[-1]
        return last.first_entry_id if last.position == self.data_bytes else self.last_entry_id + 1

    @property
    def limit_entry_id(self) -> int:
        return self.last_entry_id + 1

    @property
    def header_ledger_id(self) -> None:
        return None


def encode_index(index: BlockIndex) -> bytes:
    """Encode an index object.

    Raises UnsupportedError if the object exceeds MAX_INDEX_BYTES, the limit of its readers.
    """
    metadata = encode_ledger_metadata(index.metadata)
    length_bytes = _HEADER.size + len(metadata) + INDEXED_BLOCK_BYTES * len(index.blocks)
    require_index_fits(length_bytes)
    header = _HEADER.pack(
        BlockFormat.V1.index_magic,
        length_bytes,
        index.data_bytes,
        index.header_bytes,
        len(index.blocks),
        len(metadata),
    )
    return b"".join((header, metadata, encode_blocks(index.blocks)))


def decode_index(content: bytes, *, name: str) -> BlockIndex:
    """Decode the index object `name`. Raises CorruptError if it is invalid or inconsistent."""
    data_bytes, header_bytes, metadata_bytes = _unpack_header(content, name)
    blocks_position = _HEADER.size + metadata_bytes
    try:
        metadata = decode_ledger_metadata(content[_HEADER.size : blocks_position])
    except CorruptError as error:
        context = {"expected": "ledger metadata", "found": "other bytes"} | dict(error.context)
        raise CorruptError(error.message, object=name, position=_HEADER.size, **context) from error
    index = BlockIndex(
        metadata=metadata,
        data_bytes=data_bytes,
        blocks=decode_blocks(content[blocks_position:]),
        header_bytes=header_bytes,
    )
    _check_blocks(index, name, blocks_position)
    return index


def _unpack_header(content: bytes, name: str) -> tuple[int, int, int]:
    data_bytes, header_bytes, block_count, metadata_bytes = unpack_index_header(
        content, _HEADER, name=name, block_format=BlockFormat.V1
    )
    length = len(content)
    if block_count < 1:
        raise corrupt_index("the index has no blocks", name, 24, ">= 1", block_count)
    if _HEADER.size + metadata_bytes + INDEXED_BLOCK_BYTES * block_count != length:
        expected = f"{length - _HEADER.size} bytes of metadata and blocks"
        found = f"{metadata_bytes} + {INDEXED_BLOCK_BYTES} * {block_count}"
        raise corrupt_index(
            "the index is invalid: its parts do not add up to its length", name, 24, expected, found
        )
    return data_bytes, header_bytes, metadata_bytes


def _check_blocks(index: BlockIndex, name: str, blocks_position: int) -> None:
    first = index.blocks[0]
    if first.position != 0:
        raise corrupt_index(
            "the first block is not at position 0", name, blocks_position + 12, 0, first.position
        )
    check_blocks(
        index.blocks,
        name=name,
        at=blocks_position,
        header_bytes=index.header_bytes,
        data_bytes=index.data_bytes,
    )
    last = index.blocks[-1]
    at = blocks_position + INDEXED_BLOCK_BYTES * (len(index.blocks) - 1)
    if last.first_entry_id > index.last_entry_id:
        expected = f"<= {index.last_entry_id}"
        raise corrupt_index(
            "a block begins after the last entry", name, at, expected, last.first_entry_id
        )
    left_bytes = index.data_bytes - last.position
    if 0 < left_bytes < index.header_bytes:
        expected = f">= {index.header_bytes} bytes of a block"
        raise corrupt_index("the data ends within a block header", name, 8, expected, left_bytes)
