"""OffloadedLedger: a ledger in block format v1, open for reading (PIP-17's ReadHandle).

It finds an entry by binary search in the index and in the positions that earlier reads noted. From
there it walks entry by entry, in ranges of the read buffer's length. On the way it checks block
headers and padding against the index, each entry id, and each length before it reads by it. The
format has no checksum of entries. Pure.
Source: Pulsar's BlobStoreBackedReadHandleImpl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rsm.layout.block_v1.block_format import BlockHeader
from rsm.layout.block_v1.block_index import BlockIndex
from rsm.layout.block_v1.ledger_metadata import LedgerMetadata
from rsm.layout.block_v1.ledger_walk import DataObject, EntryPositions, LedgerWalk
from rsm.segment.errors import CorruptError, NotFoundError


class LedgerEntry(NamedTuple):
    """One entry, with the data that its writer added."""

    entry_id: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerBlock:
    """One block as read: its header, and its entries from the header's first one on."""

    part: int
    position: int
    header: BlockHeader
    entry_count: int
    entries_bytes: int
    padding_bytes: int


class OffloadedLedger:
    """An open ledger. Thread-safe: each iteration has its own buffer.

    Memory of an iteration: one read buffer, and twice the current entry.
    """

    def __init__(
        self, *, ledger_id: int, index: BlockIndex, data: DataObject, positions: EntryPositions
    ) -> None:
        self._ledger_id = ledger_id
        self._index = index
        self._data = data
        self._positions = positions

    @property
    def ledger_id(self) -> int:
        return self._ledger_id

    @property
    def metadata(self) -> LedgerMetadata:
        return self._index.metadata

    @property
    def index(self) -> BlockIndex:
        return self._index

    def entries(
        self, start_entry_id: int | None = None, end_entry_id: int | None = None
    ) -> Iterator[LedgerEntry]:
        """Iterate over the entries in [start, end), by default over all.

        Raises NotFoundError for ids outside of the ledger. The iteration raises CorruptError for
        invalid objects, possibly after valid entries, and the errors of the read.
        """
        start = self._index.first_entry_id if start_entry_id is None else start_entry_id
        end = self._index.last_entry_id + 1 if end_entry_id is None else end_entry_id
        if not self._index.first_entry_id <= start <= end <= self._index.last_entry_id + 1:
            raise NotFoundError(
                "the ledger does not have the entries",
                ledger_id=self._ledger_id,
                asked=f"[{start}, {end})",
                first_entry_id=self._index.first_entry_id,
                last_entry_id=self._index.last_entry_id,
            )
        return self._entries(start, end)

    def blocks(self) -> Iterator[LedgerBlock]:
        """Iterate over all blocks in order, to their ends. Raises the errors of `entries`."""
        walk = self._walk()
        for number, block in enumerate(self._index.blocks):
            if block.position == self._index.data_bytes:
                break
            header = walk.enter(number)
            entry_count = entries_bytes = 0
            while (length_bytes := walk.skip()) is not None:
                entry_count += 1
                entries_bytes += length_bytes
            yield LedgerBlock(
                part=block.part,
                position=block.position,
                header=header,
                entry_count=entry_count,
                entries_bytes=entries_bytes,
                padding_bytes=walk.leave(),
            )
        self._require_written(self._index.last_entry_id)

    def _entries(self, start: int, end: int) -> Iterator[LedgerEntry]:
        if start == end:
            return
        walk = self._walk()
        self._require_written(start)
        number = self._index.block_number(start)
        self._begin(walk, number, start)
        while walk.next_entry_id < start:
            walk.skip()
        for entry_id in range(start, end):
            self._require_written(entry_id)
            data = walk.take()
            if data is None:
                walk.leave()
                number += 1
                walk.enter(number)
                data = walk.take()
            assert data is not None  # each block of an index has an entry
            yield LedgerEntry(entry_id, data)
        walk.note()
        if end == self._index.last_entry_id + 1:
            walk.leave()

    def _begin(self, walk: LedgerWalk, number: int, start: int) -> None:
        """Begin at the last entry at or before `start` with a known position."""
        noted = self._positions.floor(self._data.name, start)
        if noted is None or noted[0] <= self._index.blocks[number].first_entry_id:
            walk.enter(number)
        else:
            entry_id, position = noted
            walk.enter_at(number, entry_id, position)

    def _require_written(self, entry_id: int) -> None:
        if entry_id >= self._index.end_entry_id:
            raise CorruptError(
                "the entries from here on were never written",
                object=self._data.name,
                position=self._index.data_bytes,
                expected=f"entry {self._index.end_entry_id}",
                found="the end of the data",
            )

    def _walk(self) -> LedgerWalk:
        return LedgerWalk(self._index, self._data, self._positions)
