"""Objects of Pulsar's writer, which leaves the first entry of a block out of the block's length."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.block_v2.stream_index import StreamedLedger, StreamIndex, encode_stream_index
from rsm.layout.blocks.block_sequence import IndexedBlock
from rsm.layout.blocks.ledger_attributes import ledger_attributes
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage

BLOCK_BYTES = 400
WHOLE = ByteRange(start_position=0, end_position=1 << 40)
UUID_1 = UUID(int=1)
CONTEXT = OffloadContext(segments=(OffloadSegment(uuid=UUID_1),))
Blocks = list[tuple[int, int, list[int]]]  # ledger id, first entry id, lengths


def pulsars_block(ledger_id: int, first: int, lengths: list[int]) -> tuple[bytes, int]:
    """Return a block as Pulsar writes it, and the length that it states."""
    stated = max(BLOCK_BYTES, 128 + 12 * len(lengths) + sum(lengths[1:]))
    header = struct.pack(">Iqqqq", 0x26A66D32, 128, stated, first, ledger_id)
    content = bytearray(header.ljust(128, b"\x00"))
    for entry_id, length in enumerate(lengths, start=first):
        if len(content) >= stated:  # the writer drops the rest
            break
        content += struct.pack(">iq", length, entry_id) + bytes([entry_id % 256]) * length
    padding = bytes.fromhex("fedcdead") * BLOCK_BYTES
    content += padding[: max(0, stated - len(content))]
    return bytes(content), stated


def store_of(blocks: Blocks) -> MemoryChunkStorage:
    data, position = b"", 0
    found: dict[int, list[IndexedBlock]] = {}
    ends: dict[int, int] = {}
    counts: dict[int, int] = {}
    for part, (ledger_id, first, lengths) in enumerate(blocks, start=1):
        content, stated = pulsars_block(ledger_id, first, lengths)
        block = IndexedBlock(first_entry_id=first, part=part, position=position)
        found.setdefault(ledger_id, []).append(block)
        data += content
        position += stated
        ends[ledger_id] = position
        counts[ledger_id] = first + len(lengths)
    index = StreamIndex(
        data_bytes=position,
        ledgers=tuple(
            StreamedLedger(
                ledger_id=ledger_id,
                info=LedgerInfo(ledger_id=ledger_id, entry_count=counts[ledger_id]),
                blocks=tuple(each),
                data_bytes=position,
                blocks_end_position=ends[ledger_id],
            )
            for ledger_id, each in found.items()
        ),
    )
    store = MemoryChunkStorage(wall_ms=lambda: 0)
    for name, content in ((f"{UUID_1}", data), (f"{UUID_1}-index", encode_stream_index(index))):
        source = BytesSource(content=content)
        store.create_with_content(name, source, attributes=ledger_attributes(None, {}))
    return store


def lengths_of(store: MemoryChunkStorage, ledger_id: int) -> list[tuple[int, int]]:
    ledger = open_offloader(store, read_buffer_bytes=50).read_offloaded(ledger_id, CONTEXT)
    entries = list(ledger.entries())
    assert all(data == bytes([entry_id % 256]) * len(data) for entry_id, data in entries)
    return [(entry_id, len(data)) for entry_id, data in entries]


def test_entries_when_blocks_are_longer_than_they_state_then_all_are_read() -> None:
    blocks = [
        (5, 126, [140, 150, 150]),
        (5, 129, [1_000]),
        (5, 130, [10, 10]),
        (6, 0, [380]),
    ]

    store = store_of(blocks)

    first = [(126, 140), (127, 150), (128, 150), (129, 1_000), (130, 10), (131, 10)]
    assert lengths_of(store, 5) == first
    assert lengths_of(store, 6) == [(0, 380)]


@given(
    blocks=st.lists(st.lists(st.integers(0, 500), min_size=1, max_size=5), min_size=1, max_size=6),
    first=st.integers(0, 2**62),
)
def test_entries_when_pulsar_dropped_none_then_all_are_read(
    blocks: list[list[int]], first: int
) -> None:
    placed, expected, entry_id = [], [], first
    for lengths in blocks:
        kept = lengths if len(pulsars_entries(lengths)) == len(lengths) else lengths[:1]
        placed.append((5, entry_id, kept))
        expected += list(enumerate(kept, start=entry_id))
        entry_id += len(kept)

    assert lengths_of(store_of(placed), 5) == expected


def pulsars_entries(lengths: list[int]) -> list[int]:
    """Return the entries of a block that Pulsar writes."""
    stated = max(BLOCK_BYTES, 128 + 12 * len(lengths) + sum(lengths[1:]))
    used = [128 + sum(12 + length for length in lengths[:number]) for number in range(len(lengths))]
    return [length for length, before in zip(lengths, used, strict=True) if before < stated]


def test_entries_when_pulsar_dropped_some_then_they_are_missing_and_those_before_are_read() -> None:
    store = store_of([(5, 0, [10]), (5, 1, [1_000, 20]), (5, 3, [30])])
    entries = open_offloader(store).read_offloaded(5, CONTEXT).entries()

    assert [len(next(entries).data) for _ in range(2)] == [10, 1_000]
    with pytest.raises(CorruptError) as raised:
        next(entries)

    assert raised.value.context["expected"] == "entry 2"


def test_read_offloaded_when_data_follows_the_last_block_then_corrupt() -> None:
    store = store_of([(5, 0, [10])])
    content = store.read_range(str(UUID_1), WHOLE)
    store.delete(str(UUID_1))
    source = BytesSource(content=content + b"more")
    store.create_with_content(str(UUID_1), source, attributes=ledger_attributes(None, {}))

    with pytest.raises(
        CorruptError, match=r"disagree.*position=400, expected=400 bytes, found=404"
    ):
        open_offloader(store).read_offloaded(5, CONTEXT)
