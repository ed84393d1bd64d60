"""Divides entries among the blocks of a data object (PIP-17, PIP-76).

A block is full when the next entry does not fit; it is then padded to the block size. In v1 the
last block ends with its last entry. In v2 the last block of a ledger is padded too, which is
optional for the last block of the object. An entry that does not fit into an empty block gets a
separate, longer block. If there are no such entries, the blocks equal Pulsar's byte for byte. Pure.
Source: Pulsar's BlockAwareSegmentInputStreamImpl and BufferedOffloadStream, calculateBlockSize.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rsm.layout.blocks.block_format import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    HEADER_BYTES,
    MAX_ENTRY_BYTES,
    BlockHeader,
    encode_header,
    padding,
)
from rsm.layout.blocks.block_sequence import IndexedBlock
from rsm.segment.errors import UnsupportedError


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBlock:
    """Represents one block; `block_bytes` is its length with the header and the padding.

    `ledger_id` is None in v1, whose blocks do not name their ledger.
    """

    first_entry_id: int
    entry_count: int
    position: int
    block_bytes: int
    padding_bytes: int
    ledger_id: int | None = None

    def header(self) -> bytes:
        """Encode the block's header."""
        return encode_header(
            BlockHeader(
                block_bytes=self.block_bytes,
                first_entry_id=self.first_entry_id,
                ledger_id=self.ledger_id,
            )
        )


def require_entry_fits(entry_id: int, length_bytes: int) -> None:
    """Raise UnsupportedError for an entry that exceeds the format's limit."""
    if length_bytes > MAX_ENTRY_BYTES:
        raise UnsupportedError(
            "the entry is too long for a block",
            entry_id=entry_id,
            length_bytes=length_bytes,
            limit_bytes=MAX_ENTRY_BYTES,
        )


class BlockPlanner:
    """Plans the blocks of consecutive entries from the entries' lengths. Not thread-safe."""

    def __init__(self, *, block_bytes: int, first_entry_id: int = 0) -> None:
        self._block_bytes = block_bytes
        self._next_entry_id = first_entry_id
        self._position = 0
        self._entry_count = 0
        self._used_bytes = HEADER_BYTES
        self._ledger_id: int | None = None

    @property
    def position(self) -> int:
        """Return the position of the current block: the total length of the blocks before it."""
        return self._position

    @property
    def entry_count(self) -> int:
        """Return the number of entries in the current block."""
        return self._entry_count

    @property
    def next_entry_id(self) -> int:
        return self._next_entry_id

    @property
    def room_bytes(self) -> int:
        """Return the number of bytes left in the current block for entries with their headers."""
        return self._block_bytes - self._used_bytes

    def add(self, length_bytes: int) -> PlannedBlock | None:
        """Add the next entry; return the previous block if the entry begins a new one.

        Raises UnsupportedError for an entry that exceeds the format's limit.
        """
        require_entry_fits(self._next_entry_id, length_bytes)
        size_bytes = ENTRY_HEADER_BYTES + length_bytes
        full = None
        if self._entry_count and self._used_bytes + size_bytes > self._block_bytes:
            full = self.close()
        self._used_bytes += size_bytes
        self._entry_count += 1
        self._next_entry_id += 1
        return full

    def add_fitting(self, entry_count: int, length_bytes: int) -> None:
        """Add entries with this total length, which must fit into `room_bytes`."""
        self._used_bytes += entry_count * ENTRY_HEADER_BYTES + length_bytes
        self._entry_count += entry_count
        self._next_entry_id += entry_count

    def begin_ledger(self, ledger_id: int, first_entry_id: int) -> None:
        """Continue with the entries of a ledger; the current block must be empty (v2)."""
        assert not self._entry_count
        self._ledger_id = ledger_id
        self._next_entry_id = first_entry_id

    def close(self) -> PlannedBlock:
        """End the current block with padding up to the block size; it must have an entry."""
        return self._close(max(self._used_bytes, self._block_bytes))

    def finish(self) -> PlannedBlock:
        """End the current block without padding; it must have an entry."""
        return self._close(self._used_bytes)

    def _close(self, block_bytes: int) -> PlannedBlock:
        assert self._entry_count
        block = PlannedBlock(
            first_entry_id=self._next_entry_id - self._entry_count,
            entry_count=self._entry_count,
            position=self._position,
            block_bytes=block_bytes,
            padding_bytes=block_bytes - self._used_bytes,
            ledger_id=self._ledger_id,
        )
        self._position += block_bytes
        self._entry_count = 0
        self._used_bytes = HEADER_BYTES
        return block


class BlockBuilder:
    """Encodes entries as blocks while they arrive. Not thread-safe.

    Memory: one block, or an entry that is larger.
    """

    def __init__(self, *, block_bytes: int, first_entry_id: int = 0) -> None:
        self._planner = BlockPlanner(block_bytes=block_bytes, first_entry_id=first_entry_id)
        self._content = bytearray(HEADER_BYTES)
        self._built: list[PlannedBlock] = []

    @property
    def built(self) -> tuple[PlannedBlock, ...]:
        """Return the complete blocks."""
        return tuple(self._built)

    @property
    def built_count(self) -> int:
        """Return the number of complete blocks."""
        return len(self._built)

    @property
    def next_entry_id(self) -> int:
        return self._planner.next_entry_id

    @property
    def plan(self) -> BlockPlanner:
        """Return the current block, and the length of the blocks before it. Do not change it."""
        return self._planner

    def begin_ledger(self, ledger_id: int, first_entry_id: int) -> None:
        """Continue with the entries of a ledger; the current block must be empty (v2)."""
        self._planner.begin_ledger(ledger_id, first_entry_id)

    def add(self, data: bytes | memoryview) -> bytearray | None:
        """Add the next entry; return the previous block if the entry begins a new one.

        Raises UnsupportedError for an entry that exceeds the format's limit.
        """
        entry_header = ENTRY_HEADER.pack(len(data), self._planner.next_entry_id)
        full = self._planner.add(len(data))
        content = None if full is None else self._take(full)
        self._content += entry_header
        self._content += data
        return content

    def extend(self, buffer: memoryview, bounds: Sequence[int]) -> None:
        """Add adjoining entries of `buffer` between `bounds`; they must fit into `room_bytes`."""
        content, entry_id = self._content, self._planner.next_entry_id
        pack = ENTRY_HEADER.pack
        for begin, end in pairwise(bounds):
            content += pack(end - begin, entry_id)
            content += buffer[begin:end]
            entry_id += 1
        self._planner.add_fitting(len(bounds) - 1, bounds[-1] - bounds[0])

    def close(self) -> bytearray:
        """End and return the current block, padded to the block size; it must have an entry."""
        return self._take(self._planner.close())

    def finish(self) -> bytearray:
        """End and return the current block without padding; it must have an entry."""
        return self._take(self._planner.finish())

    def _take(self, block: PlannedBlock) -> bytearray:
        self._built.append(block)
        content, self._content = self._content, bytearray(HEADER_BYTES)
        content[:HEADER_BYTES] = block.header()
        content += padding(block.padding_bytes)
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedSource(ABC):
    """Represents a data object as a SizedSource with one part for each of its `blocks`.

    At least one block must exist.
    """

    blocks: Sequence[PlannedBlock]

    @property
    def length_bytes(self) -> int:
        last = self.blocks[-1]
        return last.position + last.block_bytes

    @property
    def parts(self) -> Sequence[int]:
        return tuple(block.block_bytes for block in self.blocks)

    @abstractmethod
    def chunks(self) -> Iterator[memoryview]:
        """Yield the blocks' bytes in one pass."""


def indexed(blocks: Iterable[PlannedBlock]) -> tuple[IndexedBlock, ...]:
    """Return the index entries of blocks; parts count from 1."""
    return tuple(
        IndexedBlock(first_entry_id=block.first_entry_id, part=part, position=block.position)
        for part, block in enumerate(blocks, start=1)
    )
