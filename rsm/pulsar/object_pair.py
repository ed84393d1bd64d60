"""Writes and opens the two objects of an offload: its data and its index.

Opens them from a store or from files, and checks that they belong together. The callers choose the
names and the user metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
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
from rsm.object_deletion import delete_objects
from rsm.segment.errors import AlreadyExistsError, CorruptError, TieredStorageError
from rsm.segment.local_segment import BytesSource, ContentSource, WrappedSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage

Index = TypeVar("Index", BlockIndex, StreamIndex, BlockIndex | StreamIndex)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairObject:
    """Represents one of the two objects. `read` returns fewer bytes only at the object's end."""

    name: str
    length_bytes: int
    read: Callable[[ByteRange], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReading:
    """Represents how data objects are read: where positions are noted, and the size of a read."""

    positions: EntryPositions
    read_buffer_bytes: int = READ_BUFFER_BYTES


def write_pair(
    storage: ChunkStorage,
    names: tuple[str, str],
    attributes: tuple[Mapping[str, str], ...],
    data: ContentSource,
    index: Callable[[], bytes],
) -> None:
    """Write the data and then the index; on an error, delete what this call may have written.

    If the data cannot be written, keeps the data object if another offload of this id may be
    complete, and deletes it otherwise.
    """
    written: set[str] = set()
    has_data = False

    def create(number: int, content: ContentSource) -> None:
        name = names[number]
        try:
            storage.create_with_content(name, content, attributes=attributes[number])
        except AlreadyExistsError:
            written.discard(name)  # Another writer created this object, so it must stay.
            raise

    try:
        create(0, _WatchedSource(source=data, on_end=partial(written.add, names[0])))
        has_data = True
        index_content = BytesSource(content=index())
        written.add(names[1])
        create(1, index_content)
    except BaseException:
        if has_data or not _may_be_complete(storage, names[1]):
            delete_objects(storage, tuple(written))  # The caller gets the first error.
        raise


def _may_be_complete(storage: ChunkStorage, index: str) -> bool:
    """Return whether another offload of this id may be complete: its index may exist."""
    try:
        return storage.exists(index)
    except TieredStorageError:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _WatchedSource(WrappedSource):
    """Calls `on_end` at the source's end. Before that, no store creates the object."""

    on_end: Callable[[], None]

    def chunks(self) -> Iterator[memoryview]:
        yield from self.source.chunks()
        self.on_end()


def read_index(index: PairObject, decode: Callable[..., Index]) -> Index:
    """Read and decode a whole index object.

    Raises CorruptError if the object is invalid; before any read if it is too large.
    """
    if index.length_bytes > MAX_INDEX_BYTES:
        expected = f"at most {MAX_INDEX_BYTES}"
        raise corrupt_index(
            "the index has a wrong length", index.name, 4, expected, index.length_bytes
        )
    content = index.read(ByteRange(start_position=0, end_position=index.length_bytes))
    return decode(content, name=index.name)


def decode_any_index(content: bytes, *, name: str) -> BlockIndex | StreamIndex:
    """Decode an index object of either format. Raises CorruptError if it is invalid."""
    if content.startswith(BlockFormat.V2.index_magic.to_bytes(4, "big")):
        return decode_stream_index(content, name=name)
    return decode_index(content, name=name)


def open_ledger(
    ledger_id: int, index: BlockIndex, data: PairObject, reading: PairReading
) -> OffloadedLedger:
    """Open the ledger of a v1 pair. Raises CorruptError if the data's length is wrong."""
    # If Pulsar's offloader stopped at an entry larger than a block, the data length in the index
    # omits the last block.
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
    """Return the index with the actual positions of the blocks in `data`.

    Usually `index` already has them. Reads all data if it is longer than the index states. Raises
    CorruptError if the two objects do not belong together.
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
            "the index and the data object disagree",
            object=data.name,
            position=min(data.length_bytes, expected_bytes),
            expected=f"{expected_bytes} bytes",
            found=data.length_bytes,
        )


def _data_object(data: PairObject, reading: PairReading) -> DataObject:
    return DataObject(name=data.name, read=data.read, read_buffer_bytes=reading.read_buffer_bytes)
