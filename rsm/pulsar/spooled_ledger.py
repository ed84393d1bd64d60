"""A ledger during its offload: its entries as blocks in a temporary file, and its index.

Checks that a ledger can be offloaded. The file is needed because a store requires an object's
length before its first byte, and the iterator of entries does not know it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import BinaryIO

from rsm.layout.block_v1.block_index import BlockIndex
from rsm.layout.block_v1.block_plan import BlockBuilder, BlockedSource, indexed
from rsm.layout.block_v1.ledger_metadata import LedgerMetadata, LedgerState
from rsm.segment.errors import InvalidConfigError, RetriableError

_PIECE_BYTES = 1 << 20
_MAX_ENTRY_ID = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A closed ledger to offload.

    `entries` are (entry id, data) with consecutive ids >= 0, iterated once. `metadata` is stored
    unchanged; without it the ledger gets the fields that readers need.
    """

    ledger_id: int
    entries: Iterable[tuple[int, bytes]]
    metadata: LedgerMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledLedger(BlockedSource):
    """The data object as a PartedSource, and its index object."""

    file: BinaryIO
    metadata: LedgerMetadata

    def chunks(self) -> Iterator[memoryview]:
        descriptor, position = self.file.fileno(), 0
        while position < self.length_bytes:
            piece = os.pread(descriptor, _PIECE_BYTES, position)
            if not piece:
                raise RetriableError("the spooled blocks were cut", position=position)
            position += len(piece)
            yield memoryview(piece)

    def index(self) -> BlockIndex:
        return BlockIndex(
            metadata=self.metadata, data_bytes=self.length_bytes, blocks=indexed(self.blocks)
        )


@contextmanager
def spooled(ledger: Ledger, *, block_bytes: int) -> Iterator[SpooledLedger]:
    """Take all entries of a ledger; the file is deleted with the context. Memory: one block.

    Raises InvalidConfigError for a ledger that is empty, open or not as its metadata says, or whose
    ids are not consecutive or exceed i64. Raises UnsupportedError for a too large entry,
    RetriableError without room for the file, and the errors of the entries.
    """
    entries = iter(ledger.entries)
    first = next(entries, None)
    if first is None or not 0 <= first[0] <= _MAX_ENTRY_ID:
        found = "no entries" if first is None else f"entry {first[0]}"
        raise InvalidConfigError("not a ledger", ledger_id=ledger.ledger_id, found=found)
    first_entry_id, data = first
    with _spool_file() as file:
        builder = BlockBuilder(block_bytes=block_bytes, first_entry_id=first_entry_id)
        builder.add(data)
        length_bytes = len(data) + _spool(entries, builder, file)
        metadata = _metadata_of(ledger, builder.next_entry_id - 1, length_bytes)
        yield SpooledLedger(file=file, blocks=builder.built, metadata=metadata)


def _spool(entries: Iterator[tuple[int, bytes]], builder: BlockBuilder, file: BinaryIO) -> int:
    """Write the blocks of the remaining entries; return the length of these entries' data."""
    length_bytes = 0
    for entry_id, data in entries:
        if entry_id != builder.next_entry_id:
            raise InvalidConfigError(
                "entry ids are not consecutive", expected=builder.next_entry_id, found=entry_id
            )
        if entry_id > _MAX_ENTRY_ID:
            raise InvalidConfigError("not an entry id", found=entry_id)
        length_bytes += len(data)
        full = builder.add(data)
        if full is not None:
            _write(file, full)
    _write(file, builder.finish())
    return length_bytes


def _spool_file() -> BinaryIO:
    """Open an unbuffered file without a name. RetriableError if that fails."""
    try:
        return TemporaryFile(buffering=0)
    except OSError as error:
        raise RetriableError("no temporary file for blocks", reason=error.strerror) from error


def _write(file: BinaryIO, block: bytes) -> None:
    left = memoryview(block)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise RetriableError("blocks cannot be spooled", reason=error.strerror) from error


def _metadata_of(ledger: Ledger, last_entry_id: int, length_bytes: int) -> LedgerMetadata:
    if ledger.metadata is None:
        return LedgerMetadata(length_bytes=length_bytes, last_entry_id=last_entry_id)
    given = ledger.metadata
    expected = (LedgerState.CLOSED, last_entry_id, length_bytes)
    found = (given.state, given.last_entry_id, given.length_bytes)
    if found != expected:
        raise InvalidConfigError(
            "the ledger is not what its metadata says",
            ledger_id=ledger.ledger_id,
            expected=expected,
            found=found,
        )
    return given
