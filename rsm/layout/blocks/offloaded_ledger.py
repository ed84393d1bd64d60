"""Reads a ledger in Pulsar's block formats (PIP-17's ReadHandle). Pure.

A ledger of v1 (PIP-17) is in one data object; a ledger of v2 (PIP-76) is in one or several, in
order. The reader finds an entry by binary search in the index and in the positions that earlier
reads noted. From there it walks entry by entry, in ranges of the read buffer's length. On the way
it checks each block header against the index, each entry's id, and the padding. It checks each
length before it reads that many bytes. The formats have no checksum of entries.
Source: Pulsar's BlobStoreBackedReadHandleImpl, BlobStoreBackedReadHandleImplV2.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rsm.layout.blocks.block_format import BlockHeader
from rsm.layout.blocks.block_sequence import BlockSequence
from rsm.layout.blocks.ledger_metadata import LedgerMetadata
from rsm.layout.blocks.ledger_walk import DataObject, EntryPositions, LedgerWalk
from rsm.segment.errors import CorruptError, NotFoundError


class LedgerEntry(NamedTuple):
    """Represents one entry, with the data that its writer added."""

    entry_id: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerBlock:
    """Represents one block as read: its header, and the number and length of its entries."""

    part: int
    position: int
    header: BlockHeader
    entry_count: int
    entries_bytes: int
    padding_bytes: int


class LedgerFragment:
    """Reads a ledger's entries from one data object. Thread-safe: each iteration has a buffer.

    Memory of an iteration: one read buffer, and twice the current entry.
    """

    def __init__(
        self, *, blocks: BlockSequence, data: DataObject, positions: EntryPositions
    ) -> None:
        self.blocks = blocks
        self._data = data
        self._positions = positions

    @property
    def first_entry_id(self) -> int:
        return self.blocks.first_entry_id

    @property
    def data_name(self) -> str:
        """Return the name of the data object."""
        return self._data.name

    def find_end_entry_id(self) -> int:
        """Return the id after the last written entry; read the last block if the index lacks it."""
        if self.blocks.end_entry_id is not None:
            return self.blocks.end_entry_id
        walk = self._walk()
        walk.enter(len(self.blocks.blocks) - 1)
        while walk.skip() is not None:
            pass
        walk.leave()
        return walk.next_entry_id

    def entries(self, start: int, end: int | None = None) -> Iterator[LedgerEntry]:
        """Iterate over the entries in [start, end); if `end` is None, up to the last entry.

        `start` must exist.
        """
        if start == end:
            return
        walk = self._walk()
        self._require_written(start)
        number = self.blocks.block_number(start)
        self._begin(walk, number, start)
        while walk.next_entry_id < start:
            if walk.skip() is None:
                raise self._missing(walk.next_entry_id)
        while end is None or walk.next_entry_id < end:
            entry_id = walk.next_entry_id
            self._require_written(entry_id)
            data = walk.take()
            if data is None:
                walk.leave()
                number += 1
                if number == len(self.blocks.blocks):
                    if end is None:
                        return
                    raise self._missing(entry_id)
                walk.enter(number)
                data = walk.take()
                if data is None:
                    raise self._missing(entry_id)
            yield LedgerEntry(entry_id, data)
        walk.note()
        if number == len(self.blocks.blocks) - 1 and walk.is_at_end():
            walk.leave()

    def read_blocks(self) -> Iterator[LedgerBlock]:
        """Iterate over all blocks in order; read each one to its end."""
        walk = self._walk()
        for number, block in enumerate(self.blocks.blocks):
            if block.position == self.blocks.end_position:
                break
            header = walk.enter(number)
            entry_count = entries_bytes = 0
            while (length_bytes := walk.skip()) is not None:
                entry_count += 1
                entries_bytes += length_bytes
            if not entry_count:
                raise self._missing(walk.next_entry_id)
            yield LedgerBlock(
                part=block.part,
                position=block.position,
                header=header,
                entry_count=entry_count,
                entries_bytes=entries_bytes,
                padding_bytes=walk.leave(),
            )
        if self.blocks.limit_entry_id is not None and self.blocks.end_entry_id is not None:
            self._require_written(self.blocks.limit_entry_id - 1)

    def _begin(self, walk: LedgerWalk, number: int, start: int) -> None:
        """Move to the last entry at or before `start` whose position is known."""
        noted = walk.noted_floor(start)
        if noted is None or noted[0] <= self.blocks.blocks[number].first_entry_id:
            walk.enter(number)
        else:
            entry_id, position = noted
            walk.enter_at(number, entry_id, position)

    def _require_written(self, entry_id: int) -> None:
        end_entry_id = self.blocks.end_entry_id
        if end_entry_id is not None and entry_id >= end_entry_id:
            raise CorruptError(
                "the entries at the end of the ledger were never written",
                object=self._data.name,
                position=self.blocks.end_position,
                expected=f"entry {end_entry_id}",
                found="the end of the data",
            )

    def _missing(self, entry_id: int) -> CorruptError:
        return CorruptError(
            "entries are missing",
            object=self._data.name,
            position=self.blocks.end_position,
            expected=f"entry {entry_id}",
            found="the end of its block",
        )

    def _walk(self) -> LedgerWalk:
        return LedgerWalk(self.blocks, self._data, self._positions)


class OffloadedLedger:
    """Represents a ledger that is ready to be read. Thread-safe.

    `fragments` are in the order of the entries, and together have all of them. An entry that is in
    two fragments is read from the later one. Memory: that of one fragment for each iteration.
    """

    def __init__(
        self,
        *,
        ledger_id: int,
        metadata: LedgerMetadata,
        fragments: Sequence[LedgerFragment],
        last_entry_id: int,
    ) -> None:
        self._ledger_id = ledger_id
        self._metadata = metadata
        self._fragments = tuple(fragments)
        self._last_entry_id = last_entry_id

    @property
    def ledger_id(self) -> int:
        return self._ledger_id

    @property
    def metadata(self) -> LedgerMetadata:
        return self._metadata

    @property
    def first_entry_id(self) -> int:
        return self._fragments[0].first_entry_id

    @property
    def last_entry_id(self) -> int:
        """Return the id of the ledger's last entry, even if that entry was never written."""
        return self._last_entry_id

    def entries(
        self, start_entry_id: int | None = None, end_entry_id: int | None = None
    ) -> Iterator[LedgerEntry]:
        """Iterate over the entries in [start, end), by default over all entries.

        Raises NotFoundError for ids outside of the ledger. The iteration raises CorruptError for
        invalid objects, possibly after valid entries, and the errors of the read.
        """
        start = self.first_entry_id if start_entry_id is None else start_entry_id
        end = self.last_entry_id + 1 if end_entry_id is None else end_entry_id
        if not self.first_entry_id <= start <= end <= self.last_entry_id + 1:
            raise NotFoundError(
                "the ledger does not have the entries",
                ledger_id=self._ledger_id,
                asked=f"[{start}, {end})",
                first_entry_id=self.first_entry_id,
                last_entry_id=self.last_entry_id,
            )
        return self._entries(start, end)

    def blocks(self) -> Iterator[LedgerBlock]:
        """Iterate over all blocks in order; read each one to its end.

        Raises CorruptError for invalid objects, and the errors of the read.
        """
        for fragment in self._fragments:
            yield from fragment.read_blocks()

    def _entries(self, start: int, end: int) -> Iterator[LedgerEntry]:
        first_number = bisect_right(self._fragments, start, key=_first_entry_id) - 1
        for number in range(first_number, len(self._fragments)):
            following = self._fragments[number + 1 : number + 2]
            fragment_end = min(end, following[0].first_entry_id) if following else end
            yield from self._fragments[number].entries(start, fragment_end)
            start = fragment_end
            if start == end:
                return


def _first_entry_id(fragment: LedgerFragment) -> int:
    return fragment.first_entry_id
