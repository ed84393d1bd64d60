from __future__ import annotations

import struct
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.block_stream import BlockStream, EntryPosition
from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.stream_index import decode_stream_index, encode_stream_index
from rsm.layout.blocks.block_format import BlockFormat, decode_header
from rsm.segment.errors import InvalidConfigError, UnsupportedError

HEADER = struct.Struct(">Iqqqq")
ENTRY = struct.Struct(">iq")
PADDING = bytes.fromhex("fedcdead")


def streamed(
    *entries: tuple[int, int, int], block_bytes: int = 400
) -> tuple[BlockStream, list[bytes]]:
    """Write entries (ledger id, entry id, length); return the stream and its blocks."""
    stream = BlockStream(block_bytes=block_bytes)
    blocks: list[bytes] = []
    for ledger_id, entry_id, length in entries:
        blocks += map(bytes, stream.add(ledger_id, entry_id, bytes([entry_id % 256]) * length))
    blocks += map(bytes, stream.finish())
    return stream, blocks


def content_of(block: bytes) -> tuple[int, int, list[tuple[int, bytes]], bytes]:
    """Return a block's ledger, first entry, entries and padding, by the proposal's byte table."""
    magic, header_bytes, block_bytes, first_entry_id, ledger_id = HEADER.unpack_from(block)
    assert (magic, header_bytes, block_bytes) == (0x26A66D32, 128, len(block))
    assert block[HEADER.size : 128] == bytes(128 - HEADER.size)
    position, entries = 128, []
    while position + ENTRY.size <= len(block) and block[position] != PADDING[0]:
        length, entry_id = ENTRY.unpack_from(block, position)
        position += ENTRY.size
        entries.append((entry_id, block[position : position + length]))
        position += length
    return ledger_id, first_entry_id, entries, block[position:]


@given(
    ledgers=st.lists(
        st.tuples(
            st.integers(0, 2**62),
            st.integers(0, 2**62),
            st.lists(st.integers(0, 600), min_size=1, max_size=12),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each[0],
    ),
    block_bytes=st.integers(140, 700),
)
def test_stream_when_entries_are_added_then_blocks_by_the_rules_of_the_format(
    ledgers: list[tuple[int, int, list[int]]], block_bytes: int
) -> None:
    entries = [
        (ledger_id, first + number, length)
        for ledger_id, first, lengths in sorted(ledgers)
        for number, length in enumerate(lengths)
    ]

    stream, blocks = streamed(*entries, block_bytes=block_bytes)

    found = []
    for block in blocks:
        ledger_id, first_entry_id, in_block, padding = content_of(block)
        assert in_block[0][0] == first_entry_id
        used = 128 + sum(12 + len(data) for _, data in in_block)
        assert len(block) == max(block_bytes, used)
        assert used <= block_bytes or len(in_block) == 1
        assert padding == (PADDING * len(block))[: len(padding)]
        found += [(ledger_id, entry_id, len(data)) for entry_id, data in in_block]
    assert found == entries
    index = decode_stream_index(encode_stream_index(stream.index()), name="i")
    assert index == stream.index()
    starts = [sum(map(len, blocks[:number])) for number in range(len(blocks))]
    numbered = [block for ledger in index.ledgers for block in ledger.blocks]
    assert [block.position for block in numbered] == starts
    assert [block.part for block in numbered] == [*range(1, len(blocks) + 1)]
    assert index.data_bytes == sum(map(len, blocks))


@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=30),
    block_bytes=st.integers(140, 700),
    runs=st.lists(st.integers(1, 9), max_size=9),
)
def test_stream_when_entries_are_added_in_runs_then_the_same_blocks(
    lengths: list[int], block_bytes: int, runs: list[int]
) -> None:
    one_by_one, expected = streamed(
        *((4, 7 + number, length) for number, length in enumerate(lengths)),
        block_bytes=block_bytes,
    )
    content = b"".join(bytes([(7 + n) % 256]) * length for n, length in enumerate(lengths))
    bounds = [0, *accumulate(lengths)]
    stream = BlockStream(block_bytes=block_bytes)
    blocks: list[bytearray] = []
    number = 0
    for most in [*runs, *[1] * len(lengths)]:
        if number == len(lengths):
            break
        count = min(most, stream.count_fitting(4, 7 + number, bounds, number))
        if count:
            blocks += stream.extend(memoryview(content), bounds[number : number + count + 1])
        else:
            count = 1
            blocks += stream.add(4, 7 + number, content[bounds[number] : bounds[number + 1]])
        number += count
    blocks += stream.finish()

    assert [bytes(block) for block in blocks] == expected
    assert stream.index() == one_by_one.index()
    assert (stream.first, stream.last) == (one_by_one.first, one_by_one.last)


@pytest.mark.parametrize(
    ("ledger_id", "entry_id", "count"), [(1, 1, 2), (1, 2, 0), (1, 0, 0), (2, 1, 0)]
)
def test_count_fitting_when_entries_follow_the_last_one_then_those_with_room(
    ledger_id: int, entry_id: int, count: int
) -> None:
    stream = BlockStream(block_bytes=400)
    assert stream.count_fitting(1, 0, [0, 1], 0) == 0
    stream.add(1, 0, bytes(100))

    # 160 bytes are left: enough for 50 and 52 bytes with their headers, and for no further entry.
    assert stream.count_fitting(ledger_id, entry_id, [0, 9, 59, 123, 136], 1) == count


def test_stream_when_the_next_entry_fits_exactly_then_the_same_block() -> None:
    _, fitting = streamed((1, 0, 118), (1, 1, 130))
    _, larger = streamed((1, 0, 118), (1, 1, 131))

    assert [len(block) for block in fitting] == [400]
    assert [len(block) for block in larger] == [400, 400]


@pytest.mark.parametrize("left_bytes", [0, 1, 11])
def test_add_when_no_further_entry_fits_then_the_block_is_complete_at_once(
    left_bytes: int,
) -> None:
    stream = BlockStream(block_bytes=400)

    (block,) = stream.add(1, 0, bytes(260 - left_bytes))

    assert len(block) == 400
    assert stream.finish() == ()
    assert stream.open_block_bytes == 0
    assert stream.data_bytes == 400


def test_add_when_an_empty_entry_still_fits_then_the_block_is_open() -> None:
    stream = BlockStream(block_bytes=400)

    assert stream.add(1, 0, bytes(248)) == ()
    (block,) = stream.add(1, 1, b"")

    assert [entry_id for entry_id, _ in content_of(bytes(block))[2]] == [0, 1]


def test_add_when_an_entry_is_larger_than_a_block_then_its_own_block_at_once() -> None:
    stream = BlockStream(block_bytes=400)
    assert stream.add(1, 0, b"a") == ()

    before, own = stream.add(1, 1, bytes(1_000))

    assert [len(before), len(own)] == [400, 1_140]
    assert content_of(bytes(own))[2] == [(1, bytes(1_000))]


def test_add_when_the_ledger_changes_then_a_padded_block_of_each() -> None:
    stream, blocks = streamed((4, 130, 5), (9, 0, 6), (9, 1, 7), block_bytes=500)

    assert [len(block) for block in blocks] == [500, 500]
    assert [content_of(block)[:2] for block in blocks] == [(4, 130), (9, 0)]
    infos = [ledger.info for ledger in stream.index().ledgers]
    assert infos == [
        LedgerInfo(ledger_id=4, entry_count=131, size_bytes=5),
        LedgerInfo(ledger_id=9, entry_count=2, size_bytes=13),
    ]


def test_index_when_a_ledger_is_described_then_with_the_description() -> None:
    stream, _ = streamed((4, 0, 5), (9, 0, 6))
    info = LedgerInfo(ledger_id=4, entry_count=1, size_bytes=5, closed_ms=7)

    index = stream.index({4: info})

    assert index.ledgers[0].info is info
    assert index.ledgers[1].info.closed_ms is None


@pytest.mark.parametrize(
    ("ledger_id", "entry_id"),
    [(5, 3), (5, 2), (5, 5), (4, 0), (-1, 0), (6, -1), (2**63, 0), (6, 2**63 - 1)],
)
def test_add_when_the_entry_cannot_follow_then_refused_and_the_stream_continues(
    ledger_id: int, entry_id: int
) -> None:
    stream = BlockStream(block_bytes=400)
    stream.add(5, 3, b"a")

    with pytest.raises(InvalidConfigError):
        stream.add(ledger_id, entry_id, b"b")
    assert stream.last == EntryPosition(ledger_id=5, entry_id=3)

    assert stream.add(5, 4, b"c") == ()
    assert stream.first == EntryPosition(ledger_id=5, entry_id=3)


def test_add_when_an_entry_is_missing_then_the_error_names_it() -> None:
    stream = BlockStream(block_bytes=400)
    stream.add(5, 3, b"a")

    with pytest.raises(InvalidConfigError, match="not consecutive") as refused:
        stream.add(5, 6, b"b")

    assert (
        "(ledger_id=5, expected=4, found=6). Pass all entries of each ledger in the order of their"
        in str(refused.value)
    )


def test_add_when_ids_are_the_greatest_of_the_format_then_written() -> None:
    """Java's Long.MAX_VALUE."""
    stream = BlockStream(block_bytes=400)

    stream.add(2**63 - 1, 2**63 - 2, b"a")

    (block,) = stream.finish()
    header = decode_header(bytes(block), name="o", position=0, block_format=BlockFormat.V2)
    assert (header.ledger_id, header.first_entry_id) == (2**63 - 1, 2**63 - 2)


class HugeData(bytes):
    def __len__(self) -> int:
        return 2**31


def test_add_when_an_entry_exceeds_the_format_then_refused_and_nothing_is_lost() -> None:
    stream = BlockStream(block_bytes=400)
    stream.add(1, 0, b"a")

    with pytest.raises(UnsupportedError):
        stream.add(2, 0, HugeData())

    (block,) = stream.finish()
    assert content_of(bytes(block))[2] == [(0, b"a")]


@pytest.mark.parametrize("block_bytes", [139, 2**31])
def test_stream_when_the_block_size_is_outside_the_format_then_refused(block_bytes: int) -> None:
    with pytest.raises(InvalidConfigError, match="block size"):
        BlockStream(block_bytes=block_bytes)


@pytest.mark.parametrize(
    ("ledger_id", "length", "new_bytes"), [(1, 130, 0), (1, 131, 400), (2, 0, 400), (2, 900, 1_040)]
)
def test_new_block_when_asked_then_the_length_of_the_block_that_the_entry_begins(
    ledger_id: int, length: int, new_bytes: int
) -> None:
    stream = BlockStream(block_bytes=400)
    assert stream.new_block_bytes(1, 130) == 400
    stream.add(1, 0, bytes(118))

    assert stream.new_block_bytes(ledger_id, length) == new_bytes
    assert stream.data_bytes == stream.open_block_bytes == 400


def test_header_when_decoded_then_its_ledger() -> None:
    _, (block,) = streamed((7, 300, 1))

    header = decode_header(block, name="o", position=0, block_format=BlockFormat.V2)

    assert (header.ledger_id, header.first_entry_id, header.block_bytes) == (7, 300, 400)


@given(
    lengths=st.lists(st.lists(st.integers(0, 600), min_size=1, max_size=9), min_size=1, max_size=5)
)
def test_index_length_when_stated_then_the_index_is_no_longer(lengths: list[list[int]]) -> None:
    stream = BlockStream(block_bytes=400)
    for ledger_id, of_ledger in enumerate(lengths):
        for entry_id, length in enumerate(of_ledger):
            stream.add(ledger_id, entry_id, bytes(length))
    stated_bytes = stream.index_bytes
    stream.finish()

    found_bytes = len(encode_stream_index(stream.index()))

    assert stated_bytes - 33 * len(lengths) <= found_bytes <= stated_bytes
