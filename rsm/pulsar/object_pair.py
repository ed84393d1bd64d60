"""Opens the two objects of an offload, from a store or from files: its data and its index.

Checks that they belong together. Knows no names of objects and no user metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rsm.layout.block_v1.block_index import BlockIndex, decode_index
from rsm.layout.block_v2.overlong_blocks import locate_blocks
from rsm.layout.block_v2.stream_index import (
    StreamIndex,
    decode_stream_index,
)
from rsm.layout.blocks.block_format import BlockFormat
from rsm.layout.blocks.block_sequence import MAX_INDEX_BYTES, BlockSequence, corrupt_index
from rsm.layout.blocks.ledger_walk import READ_BUFFER_BYTES, DataObject, EntryPositions
from rsm.layout.blocks.offloaded_ledger import LedgerFragment, OffloadedLedger
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import ByteRange

Index = TypeVar("Index", BlockIndex, StreamIndex, BlockIndex | StreamIndex)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairObject:
    """One of the two objects. `read` returns fewer bytes only at the object's end."""

    name: str
    length_bytes: int
    read: Callable[[ByteRange], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReading:
    """How the data of pairs is read: where positions are noted, and in which ranges."""

    positions: EntryPositions
    read_buffer_bytes: int = READ_BUFFER_BYTES


def read_index(index: PairObject, decode: Callable[..., Index]) -> Index:
    """Read and decode a whole index object. CorruptError for a too large one, before any read."""
    if index.length_bytes > MAX_INDEX_BYTES:
        expected = f"at most {MAX_INDEX_BYTES}"
        raise corrupt_index(
            "the index has a wrong length", index.name, 4, expected, index.length_bytes
        )
    content = index.read(ByteRange(start_position=0, end_position=index.length_bytes))
    return decode(content, name=index.name)


def decode_any_index(content: bytes, *, name: str) -> BlockIndex | StreamIndex:
    """Decode an index object of either format. CorruptError if it is invalid."""
    if content.startswith(BlockFormat.V2.index_magic.to_bytes(4, "big")):
        return decode_stream_index(content, name=name)
    return decode_index(content, name=name)


def open_ledger(
    ledger_id: int, index: BlockIndex, data: PairObject, reading: PairReading
) -> OffloadedLedger:
    """Open the ledger of a v1 pair. CorruptError if the objects are of different ledgers."""
    # If Pulsar's offloader stopped at a too large entry, the index's length omits the last block.
    is_cut_off = index.end_entry_id <= index.last_entry_id
    if not (is_cut_off and data.length_bytes > index.data_bytes):
        _require_length(data, index.data_bytes)
    return OffloadedLedger(
        ledger_id=ledger_id,
        metadata=index.metadata,
        fragments=[open_fragment(index, data, reading)],
        last_entry_id=index.last_entry_id,
    )


def match_stream(index: StreamIndex, data: PairObject, reading: PairReading) -> StreamIndex:
    """Return the index with the real positions of the blocks in `data`; usually it is the same.

    Reads all data if it is longer than the index states. Raises CorruptError if index and data are
    of different objects.
    """
    if data.length_bytes > index.data_bytes:
        return locate_blocks(
            index,
            _data_object(data, reading),
            data_bytes=data.length_bytes,
            positions=reading.positions,
        )
    _require_length(data, index.data_bytes)
    return index


def open_fragment(blocks: BlockSequence, data: PairObject, reading: PairReading) -> LedgerFragment:
    """Open the entries of one ledger in a data object that matches the index."""
    return LedgerFragment(
        blocks=blocks, data=_data_object(data, reading), positions=reading.positions
    )


def _require_length(data: PairObject, expected_bytes: int) -> None:
    if data.length_bytes != expected_bytes:
        raise CorruptError(
            "index and data disagree",
            object=data.name,
            position=min(data.length_bytes, expected_bytes),
            expected=f"{expected_bytes} bytes",
            found=data.length_bytes,
        )


def _data_object(data: PairObject, reading: PairReading) -> DataObject:
    return DataObject(name=data.name, read=data.read, read_buffer_bytes=reading.read_buffer_bytes)
