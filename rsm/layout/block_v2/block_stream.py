"""Encodes the entries of ledgers, one ledger after the other, as blocks in format v2 (PIP-76).

    stream = BlockStream(block_bytes=5 << 20)
    for ledger_id, entry_id, data in entries:
        for block in stream.add(ledger_id, entry_id, data):
            …                        # the next part of the data object
    for block in stream.finish():
        …
    index = stream.index()           # the content of the index object

A block contains entries of one ledger. It is at least `block_bytes` long, so that it can be a part
of an upload; only the object's last block may be shorter. This module does not know the store, or
where the entries come from. Pure.
Source: Pulsar's BufferedOffloadStream.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.stream_index import (
    INDEX_HEADER_BYTES,
    LEDGER_HEADER_BYTES,
    StreamedLedger,
    StreamIndex,
)
from rsm.layout.blocks.block_format import (
    ENTRY_HEADER_BYTES,
    HEADER_BYTES,
    MAX_BLOCK_BYTES,
    MAX_ID,
    MIN_BLOCK_BYTES,
)
from rsm.layout.blocks.block_plan import (
    BlockBuilder,
    PlannedBlock,
    indexed,
    require_entry_fits,
)
from rsm.layout.blocks.block_sequence import INDEXED_BLOCK_BYTES
from rsm.segment.errors import InvalidConfigError

# Pulsar's default of minBlockSizeInBytes; S3 accepts no smaller part except the last.
DEFAULT_STREAM_BLOCK_BYTES = 5 << 20

# The maximum for the fields that `_info` sets: three tags, and three numbers of up to 10 bytes.
_INFO_BYTES = 33


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class EntryPosition:
    """Identifies an entry of a ledger (Pulsar's Position)."""

    ledger_id: int
    entry_id: int


class BlockStream:
    """Encodes the blocks of one data object, and then its index. Not thread-safe.

    Memory: one block, or an entry that is larger; and 100 bytes for each block and each ledger.
    """

    def __init__(self, *, block_bytes: int = DEFAULT_STREAM_BLOCK_BYTES) -> None:
        """Raise InvalidConfigError if the block size is outside the format's limits."""
        require_block_size(block_bytes)
        self._block_bytes = block_bytes
        self._builder = BlockBuilder(block_bytes=block_bytes)
        self._first: EntryPosition | None = None
        self._last: EntryPosition | None = None
        # This maps each ledger to the length of its entries' data.
        self._size_bytes: dict[int, int] = {}

    @property
    def first(self) -> EntryPosition | None:
        """Return the first entry; None if the stream has no entry."""
        return self._first

    @property
    def last(self) -> EntryPosition | None:
        """Return the last entry; None if the stream has no entry."""
        return self._last

    @property
    def data_bytes(self) -> int:
        """Return the length of the data object if the stream ended now."""
        return self._builder.plan.position + self.open_block_bytes

    @property
    def index_bytes(self) -> int:
        """Return the index object's maximum length if the stream ended now without `infos`."""
        blocks = self._builder.built_count + bool(self._builder.plan.entry_count)
        ledgers = len(self._size_bytes)
        return (
            INDEX_HEADER_BYTES
            + INDEXED_BLOCK_BYTES * blocks
            + (LEDGER_HEADER_BYTES + _INFO_BYTES) * ledgers
        )

    @property
    def open_block_bytes(self) -> int:
        """Return the length of the current block if it ended now; 0 if it has no entry."""
        plan = self._builder.plan
        if not plan.entry_count:
            return 0
        return max(self._block_bytes, self._block_bytes - plan.room_bytes)

    def new_block_bytes(self, ledger_id: int, length_bytes: int) -> int:
        """Return the length of the block that this entry would begin; 0 if it would begin none."""
        size_bytes = ENTRY_HEADER_BYTES + length_bytes
        plan = self._builder.plan
        is_same = self._last is not None and self._last.ledger_id == ledger_id
        if is_same and plan.entry_count and size_bytes <= plan.room_bytes:
            return 0
        return max(self._block_bytes, HEADER_BYTES + size_bytes)

    def require_next(self, ledger_id: int, entry_id: int, length_bytes: int) -> None:
        """Raise InvalidConfigError unless the entry can follow the last one.

        Entry ids are consecutive within a ledger, and ledger ids ascend. A ledger's id and its
        number of entries fit into an i64, so each entry id is below the largest i64.
        Raises UnsupportedError for an entry longer than MAX_ENTRY_BYTES (almost 2 GiB).
        """
        require_entry_fits(entry_id, length_bytes)
        if not 0 <= ledger_id <= MAX_ID or not 0 <= entry_id < MAX_ID:
            raise InvalidConfigError(
                "the entry's position is invalid",
                ledger_id=ledger_id,
                entry_id=entry_id,
                expected=f"ledger_id 0 to {MAX_ID}, entry_id 0 to {MAX_ID - 1}",
                advice="Pass only entries with such ids",
            )
        last = self._last
        if last is None or ledger_id > last.ledger_id:
            return
        if ledger_id < last.ledger_id:
            raise InvalidConfigError(
                "ledger ids do not ascend",
                expected=f">= {last.ledger_id}",
                found=ledger_id,
                advice="Pass the ledgers in ascending order of their ids",
            )
        if entry_id != last.entry_id + 1:
            raise InvalidConfigError(
                "entry ids are not consecutive",
                ledger_id=ledger_id,
                expected=last.entry_id + 1,
                found=entry_id,
                advice="Pass all entries of each ledger in the order of their ids",
            )

    def add(self, ledger_id: int, entry_id: int, data: bytes | memoryview) -> tuple[bytearray, ...]:
        """Add the next entry; return the blocks that are now complete, in order.

        Raises the errors of `require_next` before any change.
        """
        self.require_next(ledger_id, entry_id, len(data))
        complete: list[bytearray] = []
        if self._last is None or self._last.ledger_id != ledger_id:
            complete += self.finish()
            self._builder.begin_ledger(ledger_id, entry_id)
        full = self._builder.add(data)
        if full is not None:
            complete.append(full)
        complete += self._close_if_full()
        self._last = EntryPosition(ledger_id=ledger_id, entry_id=entry_id)
        self._first = self._first or self._last
        self._size_bytes[ledger_id] = self._size_bytes.get(ledger_id, 0) + len(data)
        return tuple(complete)

    def count_fitting(
        self, ledger_id: int, entry_id: int, bounds: Sequence[int], number: int
    ) -> int:
        """Return how many entries `extend` may add, starting with entry `number` of `bounds`.

        `bounds` are the positions of adjoining entries, and the end of the last entry. `entry_id`
        is the id of the first entry to add. Returns 0 if that entry begins a block, or if it cannot
        follow the stream's last entry.
        """
        plan = self._builder.plan
        previous = EntryPosition(ledger_id=ledger_id, entry_id=entry_id - 1)
        if self._last != previous or not plan.entry_count:
            return 0
        begin, room_bytes = bounds[number], plan.room_bytes

        def used_bytes(following: int) -> int:
            return bounds[following] - begin + ENTRY_HEADER_BYTES * (following - number)

        candidates = range(number + 1, len(bounds))
        return bisect_right(candidates, room_bytes, key=used_bytes)

    def extend(self, buffer: memoryview, bounds: Sequence[int]) -> tuple[bytearray, ...]:
        """Add the ledger's next entries to the current block; return the block if it is full.

        The entries must fit into the block. They adjoin in `buffer`; `bounds` are their positions,
        and the end of the last entry.
        """
        last = self._last
        assert last is not None
        self._builder.extend(buffer, bounds)
        entry_id = last.entry_id + len(bounds) - 1
        self._last = EntryPosition(ledger_id=last.ledger_id, entry_id=entry_id)
        self._size_bytes[last.ledger_id] += bounds[-1] - bounds[0]
        return self._close_if_full()

    def _close_if_full(self) -> tuple[bytearray, ...]:
        """End the current block if it has no room for an entry."""
        if self._builder.plan.room_bytes >= ENTRY_HEADER_BYTES:
            return ()
        return (self._builder.close(),)

    def finish(self, *, is_padded: bool = True) -> tuple[bytearray, ...]:
        """End the current block and return it; return an empty tuple if the block has no entry.

        Only the object's last block may lack padding.
        """
        if not self._builder.plan.entry_count:
            return ()
        return (self._builder.close() if is_padded else self._builder.finish(),)

    def index(self, infos: Mapping[int, LedgerInfo] | None = None) -> StreamIndex:
        """Return the index of the complete blocks; at least one must exist.

        `infos` has the description of each ledger whose metadata is known, by the ledger's id. For
        any other ledger, the index has the number of entries so far, and the length of their data
        in this object. Raises InvalidConfigError if an info counts fewer entries than the stream.
        """
        data_bytes = self._builder.plan.position
        groups = [
            (ledger_id, tuple(blocks))
            for ledger_id, blocks in groupby(self._builder.built, key=_ledger_id)
        ]
        numbered = iter(indexed(self._builder.built))
        ledgers = []
        for ledger_id, blocks in groups:
            last = blocks[-1]
            info = (infos or {}).get(ledger_id) or self._info(ledger_id, last)
            _require_within(info, last)
            ledgers.append(
                StreamedLedger(
                    ledger_id=ledger_id,
                    info=info,
                    blocks=tuple(next(numbered) for _ in blocks),
                    data_bytes=data_bytes,
                    blocks_end_position=last.position + last.block_bytes,
                )
            )
        return StreamIndex(data_bytes=data_bytes, ledgers=tuple(ledgers))

    def _info(self, ledger_id: int, last: PlannedBlock) -> LedgerInfo:
        return LedgerInfo(
            ledger_id=ledger_id,
            entry_count=last.first_entry_id + last.entry_count,
            size_bytes=self._size_bytes[ledger_id],
        )


def require_block_size(block_bytes: int) -> None:
    """Raise InvalidConfigError if a block size is outside the formats' limits."""
    if not MIN_BLOCK_BYTES <= block_bytes <= MAX_BLOCK_BYTES:
        raise InvalidConfigError(
            "the block size is invalid",
            found=block_bytes,
            expected=f"{MIN_BLOCK_BYTES}..{MAX_BLOCK_BYTES}",
        )


def _require_within(info: LedgerInfo, last: PlannedBlock) -> None:
    """Raise InvalidConfigError if the info counts fewer entries; a count of 0 means unknown."""
    end_entry_id = last.first_entry_id + last.entry_count
    if info.entry_count and end_entry_id > info.entry_count:
        raise InvalidConfigError(
            "the ledger's metadata is invalid: it counts fewer entries than the stream",
            ledger_id=info.ledger_id,
            expected=f"entries 0 to {info.entry_count - 1}",
            found=f"entry {end_entry_id - 1}",
            advice="Pass the metadata that describes these entries",
        )


def _ledger_id(block: PlannedBlock) -> int:
    assert block.ledger_id is not None
    return block.ledger_id
