"""Encodes a ledger for its offload: its entries as blocks, and then its index.

The pass over the entries also checks that the ledger can be offloaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rsm.layout.block_v1.block_index import BlockIndex
from rsm.layout.blocks.block_format import MAX_ID
from rsm.layout.blocks.block_plan import BlockBuilder, PlannedBlock, indexed
from rsm.layout.blocks.ledger_metadata import LedgerMetadata, LedgerState
from rsm.segment.errors import InvalidConfigError
from rsm.segment.local_segment import PartBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Represents a closed ledger to offload.

    `entries` yields (entry id, data) with consecutive ids >= 0, and is iterated once. `metadata` is
    stored unchanged. If it is None, the index gets only the fields that readers need.
    """

    ledger_id: int
    entries: Iterable[tuple[int, bytes]]
    metadata: LedgerMetadata | None = None


class LedgerBlocks:
    """Represents a data object as a PartedSource for one pass, then its index. Memory: one block.

    The pass takes all entries of the ledger. It raises InvalidConfigError for a ledger that is
    empty, open or different from its metadata, or whose ids are not consecutive or exceed i64. It
    raises UnsupportedError for an entry that is too large. It passes on the errors of the entries.
    """

    length_bytes = None
    parts = PartBounds.EACH_CHUNK

    def __init__(self, ledger: Ledger, *, block_bytes: int) -> None:
        self._ledger = ledger
        self._block_bytes = block_bytes
        self._blocks: tuple[PlannedBlock, ...] = ()
        self._metadata: LedgerMetadata | None = None

    def chunks(self) -> Iterator[memoryview]:
        entries = iter(self._ledger.entries)
        first = next(entries, None)
        if first is None or not 0 <= first[0] <= MAX_ID:
            found = "no entries" if first is None else f"entry {first[0]}"
            raise InvalidConfigError(
                "the ledger's entries are invalid",
                ledger_id=self._ledger.ledger_id,
                found=found,
                expected=f"ids from 0 to {MAX_ID}",
                advice="Pass at least one entry; begin with an id in this range",
            )
        first_entry_id, data = first
        builder = BlockBuilder(block_bytes=self._block_bytes, first_entry_id=first_entry_id)
        builder.add(data)
        length_bytes = len(data)
        for entry_id, data in entries:
            _require_next(entry_id, builder)
            length_bytes += len(data)
            full = builder.add(data)
            if full is not None:
                yield memoryview(full)
        last = builder.finish()
        # Check before the last block: a store keeps nothing of a pass that fails before its end.
        self._metadata = _metadata_of(self._ledger, builder.next_entry_id - 1, length_bytes)
        self._blocks = builder.built
        yield memoryview(last)

    def index(self) -> BlockIndex:
        """Return the index of the blocks. Call it only after the pass."""
        assert self._metadata is not None
        last = self._blocks[-1]
        return BlockIndex(
            metadata=self._metadata,
            data_bytes=last.position + last.block_bytes,
            blocks=indexed(self._blocks),
        )


def _require_next(entry_id: int, builder: BlockBuilder) -> None:
    if entry_id != builder.next_entry_id:
        raise InvalidConfigError(
            "entry ids are not consecutive",
            expected=builder.next_entry_id,
            found=entry_id,
            advice="Pass all entries in the order of their ids",
        )
    if entry_id > MAX_ID:
        raise InvalidConfigError(
            "the entry id is too large",
            found=entry_id,
            expected=f"at most {MAX_ID}",
            advice="Pass only entries with lower ids",
        )


def _metadata_of(ledger: Ledger, last_entry_id: int, length_bytes: int) -> LedgerMetadata:
    if ledger.metadata is None:
        return LedgerMetadata(length_bytes=length_bytes, last_entry_id=last_entry_id)
    given = ledger.metadata
    entries = _described(LedgerState.CLOSED, last_entry_id, length_bytes)
    metadata = _described(given.state, given.last_entry_id, given.length_bytes)
    if entries != metadata:
        raise InvalidConfigError(
            "the ledger differs from its metadata",
            ledger_id=ledger.ledger_id,
            entries=entries,
            metadata=metadata,
            advice="Pass all entries of the ledger, and its metadata as it is after the close",
        )
    return given


def _described(state: LedgerState, last_entry_id: int, length_bytes: int) -> str:
    return f"{state.name.lower()}, last entry {last_entry_id}, {length_bytes} bytes"
