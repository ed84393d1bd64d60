"""Encodes, decodes and checks the list of blocks in an index object, for both formats. Pure.

An index has 20 bytes for each block, big-endian: first entry id i64, part i32 (from 1), position
of the block header i64.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rsm.layout.blocks.block_format import HEADER_BYTES, BlockFormat, BlockHeader
from rsm.segment.errors import CorruptError, UnsupportedError

# Readers refuse longer indexes. Most indexes are shorter than 1 MiB.
MAX_INDEX_BYTES = 64 << 20

_BLOCK = struct.Struct(">qiq")
INDEXED_BLOCK_BYTES = _BLOCK.size


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedBlock:
    """Represents one block: its first entry, its part of the upload, and its position."""

    first_entry_id: int
    part: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSequence(ABC):
    """Represents a ledger's blocks in a data object of `data_bytes`.

    `blocks` is not empty and ascends by entry id and by position.
    """

    data_bytes: int
    blocks: tuple[IndexedBlock, ...]
    header_bytes: int = HEADER_BYTES

    @property
    def first_entry_id(self) -> int:
        return self.blocks[0].first_entry_id

    @property
    @abstractmethod
    def end_position(self) -> int:
        """Return the position after the last block and its padding."""

    @property
    @abstractmethod
    def end_entry_id(self) -> int | None:
        """Return the id after the last written entry; None if the index does not contain it."""

    @property
    @abstractmethod
    def limit_entry_id(self) -> int | None:
        """Return the exclusive upper limit of the ledger's entry ids; None if it is unknown."""

    @property
    @abstractmethod
    def header_ledger_id(self) -> int | None:
        """Return the ledger id in the block headers; None in v1."""

    def block_number(self, entry_id: int) -> int:
        """Return the number of an entry's block, counted from 0."""
        return bisect_right(self.blocks, entry_id, key=lambda block: block.first_entry_id) - 1

    def block_end_position(self, number: int) -> int:
        """Return the position after a block and its padding."""
        following = number + 1
        return (
            self.blocks[following].position if following < len(self.blocks) else self.end_position
        )

    def block_end_entry_id(self, number: int) -> int | None:
        """Return the id after a block's last entry; None if the index does not contain it."""
        following = number + 1
        if following < len(self.blocks):
            return self.blocks[following].first_entry_id
        return self.end_entry_id

    def block_header(self, number: int) -> BlockHeader:
        """Return the header that a block must have."""
        block = self.blocks[number]
        return BlockHeader(
            block_bytes=self.block_end_position(number) - block.position,
            first_entry_id=block.first_entry_id,
            header_bytes=self.header_bytes,
            ledger_id=self.header_ledger_id,
        )


def encode_blocks(blocks: Iterable[IndexedBlock]) -> bytes:
    """Encode the blocks of an index."""
    return b"".join(_BLOCK.pack(b.first_entry_id, b.part, b.position) for b in blocks)


def require_index_fits(length_bytes: int) -> None:
    """Raise UnsupportedError if readers would refuse an index of this length."""
    if length_bytes > MAX_INDEX_BYTES:
        raise UnsupportedError(
            "the index of the blocks is too long",
            found=f"{length_bytes} bytes",
            expected=f"at most {MAX_INDEX_BYTES} bytes",
            advice="Choose larger blocks, or write less data into one object",
        )


def decode_blocks(content: bytes | memoryview) -> tuple[IndexedBlock, ...]:
    """Decode the blocks of an index. The length of `content` must be a multiple of 20."""
    return tuple(
        IndexedBlock(first_entry_id=first_entry_id, part=part, position=position)
        for first_entry_id, part, position in _BLOCK.iter_unpack(content)
    )


def unpack_index_header(
    content: bytes, header: struct.Struct, *, name: str, block_format: BlockFormat
) -> tuple[int, ...]:
    """Unpack an index object's header; return the fields after the index length.

    Both formats begin with magic, index length, data length and block header length. Raises
    CorruptError if one of these four fields is invalid.
    """
    if len(content) < header.size:
        expected = f">= {header.size} bytes"
        raise corrupt_index("the index is truncated", name, 0, expected, len(content))
    fields = header.unpack_from(content)
    magic, index_bytes, data_bytes, header_bytes = fields[:4]
    if magic != block_format.index_magic:
        raise corrupt_index(
            "the object is not an index: its magic is wrong",
            name,
            0,
            f"{block_format.index_magic:08x}",
            f"{magic:08x}",
        )
    if index_bytes != len(content) or index_bytes > MAX_INDEX_BYTES:
        expected = f"{len(content)}, at most {MAX_INDEX_BYTES}"
        raise corrupt_index("the index has a wrong length", name, 4, expected, index_bytes)
    if data_bytes < 0:
        raise corrupt_index("the data length is negative", name, 8, ">= 0", data_bytes)
    if not block_format.min_header_bytes <= header_bytes <= MAX_INDEX_BYTES:
        message = "the block header length is invalid"
        expected = f"{block_format.min_header_bytes} to {MAX_INDEX_BYTES}"
        raise corrupt_index(message, name, 16, expected, header_bytes)
    return fields[2:]


def check_blocks(
    blocks: Sequence[IndexedBlock], *, name: str, at: int, header_bytes: int, data_bytes: int
) -> None:
    """Check that blocks ascend within the data; `at` is the list's position in the index.

    Raises CorruptError.
    """
    first = blocks[0]
    if first.first_entry_id < 0:
        raise corrupt_index("the entry id is negative", name, at, ">= 0", first.first_entry_id)
    for number, (before, block) in enumerate(pairwise(blocks), start=1):
        block_at = at + number * _BLOCK.size
        if block.first_entry_id <= before.first_entry_id:
            expected = f"> {before.first_entry_id}"
            raise corrupt_index(
                "entry ids do not ascend", name, block_at, expected, block.first_entry_id
            )
        least = before.position + header_bytes
        # In v1 the last block may begin at the end of the data if none of the block was written.
        if not least <= block.position <= data_bytes:
            expected = f"{least}..{data_bytes}"
            raise corrupt_index(
                "the block position is invalid", name, block_at + 12, expected, block.position
            )


def corrupt_index(
    message: str, name: str, at: int, expected: object, found: object
) -> CorruptError:
    """Return the error for a field at a position of the index object `name`."""
    return CorruptError(message, object=name, position=at, expected=expected, found=found)
