"""Encodes and decodes the index object of a streamed object in block format v2 (PIP-76). Pure.

All numbers are big-endian:

    0   magic 3D 1F B0 BC
    4   index length          i32, the whole object
    8   data object length    i64
    16  block header length   i64, 128
    24  for each ledger, by ascending id:
            ledger id         i64
            block count       i32
            metadata length   i32
            metadata          protobuf, rsm.layout.block_v2.ledger_info
            for each block:   first entry id i64, part i32, position of the block i64

Parts count from 1 in each object, across its ledgers. Positions are those of block headers.
The index does not contain the id of a ledger's last entry in the object: only the padding of the
ledger's last block shows where the entries end. Source: Pulsar's OffloadIndexBlockV2Impl.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import pairwise

from rsm.layout.block_v2.ledger_info import LedgerInfo, decode_ledger_info, encode_ledger_info
from rsm.layout.blocks.block_format import HEADER_BYTES, BlockFormat, BlockHeader
from rsm.layout.blocks.block_sequence import (
    INDEXED_BLOCK_BYTES,
    BlockSequence,
    IndexedBlock,
    check_blocks,
    corrupt_index,
    decode_blocks,
    encode_blocks,
    require_index_fits,
    unpack_index_header,
)
from rsm.segment.errors import CorruptError

_HEADER = struct.Struct(">Iiqq")
_LEDGER = struct.Struct(">qii")
INDEX_HEADER_BYTES = _HEADER.size
LEDGER_HEADER_BYTES = _LEDGER.size


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedLedger(BlockSequence):
    """Represents the blocks of one ledger in a streamed object.

    `stated_bytes` are the lengths in the block headers; empty if the headers have the actual
    lengths. `info_position` is the info's position in a decoded index; errors name that position.
    """

    ledger_id: int
    info: LedgerInfo
    blocks_end_position: int
    info_position: int = field(default=0, compare=False)
    stated_bytes: tuple[int, ...] = ()

    @property
    def end_position(self) -> int:
        return self.blocks_end_position

    @property
    def end_entry_id(self) -> None:
        return None

    @property
    def limit_entry_id(self) -> int | None:
        # Pulsar writes 0, or omits the field, if it does not know the number.
        return self.info.entry_count or None

    @property
    def header_ledger_id(self) -> int:
        return self.ledger_id

    def block_header(self, number: int) -> BlockHeader:
        header = BlockSequence.block_header(self, number)
        if not self.stated_bytes:
            return header
        return replace(header, block_bytes=self.stated_bytes[number])


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamIndex:
    """Represents a streamed object's index. `ledgers` is not empty; ids and positions ascend."""

    data_bytes: int
    ledgers: tuple[StreamedLedger, ...]
    header_bytes: int = HEADER_BYTES

    def ledger(self, ledger_id: int) -> StreamedLedger | None:
        """Return a ledger's blocks; None if the object has no such ledger."""
        number = bisect_left(self.ledgers, ledger_id, key=lambda ledger: ledger.ledger_id)
        found = self.ledgers[number : number + 1]
        return found[0] if found and found[0].ledger_id == ledger_id else None


def encode_stream_index(index: StreamIndex) -> bytes:
    """Encode an index object.

    Raises UnsupportedError if the object exceeds MAX_INDEX_BYTES, the limit of its readers.
    """
    ledgers = b"".join(map(_encode_ledger, index.ledgers))
    length_bytes = _HEADER.size + len(ledgers)
    require_index_fits(length_bytes)
    return (
        _HEADER.pack(BlockFormat.V2.index_magic, length_bytes, index.data_bytes, index.header_bytes)
        + ledgers
    )


def decode_stream_index(content: bytes, *, name: str) -> StreamIndex:
    """Decode the index object `name`. Raises CorruptError if it is invalid or inconsistent."""
    data_bytes, header_bytes = unpack_index_header(
        content, _HEADER, name=name, block_format=BlockFormat.V2
    )
    view = memoryview(content)
    found: list[_FoundLedger] = []
    at = INDEX_HEADER_BYTES
    while at < len(content):
        found.append(_decode_ledger(view, at, name))
        at = found[-1].end_at
    if not found:
        raise corrupt_index("the index has no ledgers", name, 24, ">= 1", 0)
    _check_order(found, name, header_bytes, data_bytes)
    ends = [each.blocks[0].position for each in found[1:]]
    return StreamIndex(
        data_bytes=data_bytes,
        header_bytes=header_bytes,
        ledgers=tuple(
            StreamedLedger(
                ledger_id=each.ledger_id,
                info=each.info,
                blocks=each.blocks,
                header_bytes=header_bytes,
                data_bytes=data_bytes,
                blocks_end_position=end_position,
                info_position=each.at + _LEDGER.size,
            )
            for each, end_position in zip(found, [*ends, data_bytes], strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundLedger:
    """A ledger in an index object, with the positions of the ledger and of its blocks."""

    ledger_id: int
    info: LedgerInfo
    blocks: tuple[IndexedBlock, ...]
    at: int
    blocks_at: int
    end_at: int


def _encode_ledger(ledger: StreamedLedger) -> bytes:
    info = encode_ledger_info(ledger.info)
    header = _LEDGER.pack(ledger.ledger_id, len(ledger.blocks), len(info))
    return b"".join((header, info, encode_blocks(ledger.blocks)))


def _decode_ledger(content: memoryview, at: int, name: str) -> _FoundLedger:
    """Decode the ledger at a position of the index; check each length before using it."""
    left_bytes = len(content) - at
    if left_bytes < _LEDGER.size:
        expected = f">= {_LEDGER.size} bytes"
        raise corrupt_index("the index is truncated in a ledger", name, at, expected, left_bytes)
    ledger_id, block_count, info_bytes = _LEDGER.unpack_from(content, at)
    if ledger_id < 0:
        raise corrupt_index("the ledger id is negative", name, at, ">= 0", ledger_id)
    most_blocks = (left_bytes - _LEDGER.size) // INDEXED_BLOCK_BYTES
    if not 1 <= block_count <= most_blocks:
        expected = f"1..{most_blocks}"
        raise corrupt_index("the block count is invalid", name, at + 8, expected, block_count)
    blocks_bytes = INDEXED_BLOCK_BYTES * block_count
    most_info_bytes = left_bytes - _LEDGER.size - blocks_bytes
    if not 0 <= info_bytes <= most_info_bytes:
        expected = f"0..{most_info_bytes}"
        raise corrupt_index("the metadata length is invalid", name, at + 12, expected, info_bytes)
    info_at = at + _LEDGER.size
    blocks_at = info_at + info_bytes
    end_at = blocks_at + blocks_bytes
    return _FoundLedger(
        ledger_id=ledger_id,
        info=_decode_info(bytes(content[info_at:blocks_at]), ledger_id, name, info_at),
        blocks=decode_blocks(content[blocks_at:end_at]),
        at=at,
        blocks_at=blocks_at,
        end_at=end_at,
    )


def _decode_info(content: bytes, ledger_id: int, name: str, at: int) -> LedgerInfo:
    try:
        info = decode_ledger_info(content)
    except CorruptError as error:
        context = {"expected": "ledger info", "found": "other bytes"} | dict(error.context)
        raise CorruptError(error.message, object=name, position=at, **context) from error
    if info.ledger_id != ledger_id:
        found = info.ledger_id
        raise corrupt_index("the metadata names another ledger", name, at, ledger_id, found)
    return info


def _check_order(
    ledgers: list[_FoundLedger], name: str, header_bytes: int, data_bytes: int
) -> None:
    """Check that ledgers and their blocks ascend within the data."""
    first = ledgers[0].blocks[0]
    if first.position != 0:
        at = ledgers[0].blocks_at + 12
        raise corrupt_index("the first block is not at position 0", name, at, 0, first.position)
    for ledger in ledgers:
        check_blocks(
            ledger.blocks,
            name=name,
            at=ledger.blocks_at,
            header_bytes=header_bytes,
            data_bytes=data_bytes,
        )
        last = ledger.blocks[-1]
        last_at = ledger.end_at - INDEXED_BLOCK_BYTES
        entry_count = ledger.info.entry_count
        if entry_count and last.first_entry_id >= entry_count:
            expected = f"< {entry_count}"
            raise corrupt_index(
                "a block begins after the last entry", name, last_at, expected, last.first_entry_id
            )
    for before, ledger in pairwise(ledgers):
        if ledger.ledger_id <= before.ledger_id:
            expected = f"> {before.ledger_id}"
            raise corrupt_index(
                "ledger ids do not ascend", name, ledger.at, expected, ledger.ledger_id
            )
        least = before.blocks[-1].position + header_bytes
        position = ledger.blocks[0].position
        if not least <= position <= data_bytes:
            expected = f"{least}..{data_bytes}"
            at = ledger.blocks_at + 12
            raise corrupt_index("the block position is invalid", name, at, expected, position)
    left_bytes = data_bytes - ledgers[-1].blocks[-1].position
    if left_bytes < header_bytes:
        expected = f">= {header_bytes} bytes of a block"
        raise corrupt_index("the data ends within a block header", name, 8, expected, left_bytes)
