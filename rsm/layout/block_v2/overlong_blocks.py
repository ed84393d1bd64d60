"""Locates the blocks of a streamed object whose headers state lengths that are too short. Pure.

**Data loss in Pulsar:** its writer drops entries that begin after the stated length. Reading them
fails.

Pulsar's writer does not count the first entry of each block in the block's length. If the entries
then exceed the length, the block ends with its last entry. The positions in the index are sums of
the stated lengths, so Pulsar's reader finds no block there. This module walks through the entries
to find the actual positions. Source: Pulsar's BufferedOffloadStream.
"""

from __future__ import annotations

from dataclasses import replace

from rsm.layout.block_v2.stream_index import StreamedLedger, StreamIndex
from rsm.layout.blocks.ledger_walk import DataObject, EntryPositions, LedgerWalk
from rsm.segment.errors import CorruptError


def locate_blocks(
    index: StreamIndex, data: DataObject, *, data_bytes: int, positions: EntryPositions
) -> StreamIndex:
    """Return the index with the blocks' actual positions in a data object of `data_bytes`.

    Walks through all entries. Raises CorruptError if the blocks do not fill the object.
    """
    position = 0
    ledgers: list[StreamedLedger] = []
    for ledger in index.ledgers:
        starts: list[int] = []
        for number in range(len(ledger.blocks)):
            starts.append(position)
            position = _end_position(ledger, number, position, data, data_bytes, positions)
        blocks = zip(ledger.blocks, starts, strict=True)
        ledgers.append(
            replace(
                ledger,
                data_bytes=data_bytes,
                blocks=tuple(replace(block, position=start) for block, start in blocks),
                blocks_end_position=position,
                stated_bytes=tuple(
                    ledger.block_header(number).block_bytes for number in range(len(starts))
                ),
            )
        )
    if position != data_bytes:
        raise CorruptError(
            "the index and the data object disagree",
            object=data.name,
            position=position,
            expected=f"{position} bytes",
            found=data_bytes,
        )
    return replace(index, data_bytes=data_bytes, ledgers=tuple(ledgers))


def _end_position(
    ledger: StreamedLedger,
    number: int,
    position: int,
    data: DataObject,
    data_bytes: int,
    positions: EntryPositions,
) -> int:
    """Return the end position of the block that begins at `position`."""
    stated_bytes = ledger.block_header(number).block_bytes
    block = replace(
        ledger,
        data_bytes=data_bytes,
        blocks=(replace(ledger.blocks[number], position=position),),
        blocks_end_position=data_bytes,
        stated_bytes=(stated_bytes,),
    )
    walk = LedgerWalk(block, data, positions)
    walk.enter(0)
    end_position = position + stated_bytes
    while walk.position < end_position and not walk.is_at_padding():
        if walk.skip() is None:
            break
    return max(walk.position, end_position)
