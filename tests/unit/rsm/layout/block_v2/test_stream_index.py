from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.block_v2.stream_index import (
    INDEX_HEADER_BYTES,
    StreamedLedger,
    StreamIndex,
    decode_stream_index,
    encode_stream_index,
)
from rsm.layout.blocks.block_sequence import MAX_INDEX_BYTES, IndexedBlock
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.golden_ledger import INDEX_FILE, STREAM_INDEX_FILE, STREAM_UUID


def ledger_of(
    ledger_id: int, *blocks: tuple[int, int, int], end: int, entry_count: int | None = None
) -> StreamedLedger:
    """Return a ledger with these blocks: (first entry, part, position)."""
    return StreamedLedger(
        ledger_id=ledger_id,
        info=LedgerInfo(ledger_id=ledger_id, entry_count=entry_count, size_bytes=70),
        blocks=tuple(
            IndexedBlock(first_entry_id=entry_id, part=part, position=position)
            for entry_id, part, position in blocks
        ),
        data_bytes=2_000,
        blocks_end_position=end,
    )


INDEX = StreamIndex(
    data_bytes=2_000,
    ledgers=(
        ledger_of(7, (200, 1, 0), (205, 2, 500), end=1_000, entry_count=209),
        ledger_of(9, (0, 3, 1_000), (3, 4, 1_500), end=2_000, entry_count=8),
    ),
)
CONTENT = encode_stream_index(INDEX)
SECOND_AT = len(CONTENT) - 40 - len(b"\x08\x09\x10\x08\x18\x46") - 16
FIRST_BLOCKS_AT = SECOND_AT - 40
SECOND_BLOCKS_AT = len(CONTENT) - 40


@st.composite
def indexes(draw: st.DrawFn) -> StreamIndex:
    ledger_ids = sorted(draw(st.sets(st.integers(0, 2**63 - 1), min_size=1, max_size=5)))
    position, part = 0, 0
    shapes = []
    for ledger_id in ledger_ids:
        entry_ids = sorted(draw(st.sets(st.integers(0, 2**62), min_size=1, max_size=6)))
        blocks = []
        for entry_id in entry_ids:
            part += 1
            blocks.append(IndexedBlock(first_entry_id=entry_id, part=part, position=position))
            position += draw(st.integers(140, 2**40))  # beyond 2 GiB
        info = LedgerInfo(
            ledger_id=ledger_id,
            entry_count=draw(st.none() | st.just(0) | st.integers(entry_ids[-1] + 1, 2**63 - 1)),
            size_bytes=draw(st.none() | st.integers(0, 2**63 - 1)),
            closed_ms=draw(st.none() | st.integers(0, 2**62)),
        )
        shapes.append((ledger_id, info, tuple(blocks), position))
    return StreamIndex(
        data_bytes=position,
        ledgers=tuple(
            StreamedLedger(
                ledger_id=ledger_id,
                info=info,
                blocks=blocks,
                data_bytes=position,
                blocks_end_position=end,
            )
            for ledger_id, info, blocks, end in shapes
        ),
    )


@given(index=indexes())
def test_index_when_encoded_then_decoded_to_the_same(index: StreamIndex) -> None:
    assert decode_stream_index(encode_stream_index(index), name="i") == index


def test_index_when_pulsar_wrote_it_then_encoded_to_its_bytes() -> None:
    content = STREAM_INDEX_FILE.read_bytes()

    index = decode_stream_index(content, name="i")

    assert encode_stream_index(index) == content
    assert index.data_bytes == 58_292
    assert [ledger.ledger_id for ledger in index.ledgers] == [21, 22]
    first, second = index.ledgers
    assert [block.first_entry_id for block in first.blocks] == [0, 7, 13, 15, 35]
    assert [block.position for block in second.blocks] == [41_908, 50_100]
    assert [block.part for ledger in index.ledgers for block in ledger.blocks] == [*range(1, 8)]
    assert first.end_position == 41_908
    assert first.info == LedgerInfo(
        ledger_id=21, entry_count=36, size_bytes=34_917, closed_ms=1_700_000_000_000
    )


def test_index_when_its_ledger_names_its_offload_then_decoded_to_the_same() -> None:
    context = OffloadContext(
        uuid=STREAM_UUID, segments=(OffloadSegment(uuid=STREAM_UUID, last_entry_id=8),)
    )
    ledgers = tuple(
        replace(
            ledger,
            info=replace(ledger.info, offload_context=context, properties=(("a", "b"),)),
        )
        for ledger in INDEX.ledgers
    )
    index = replace(INDEX, ledgers=ledgers)

    assert decode_stream_index(encode_stream_index(index), name="i") == index


def test_index_when_readers_would_refuse_its_length_then_not_encoded() -> None:
    ledger = INDEX.ledgers[0]
    info = replace(ledger.info, properties=(("k", "v" * MAX_INDEX_BYTES),))

    with pytest.raises(UnsupportedError, match="too long") as refused:
        encode_stream_index(replace(INDEX, ledgers=(replace(ledger, info=info),)))

    assert f"at most {MAX_INDEX_BYTES} bytes" in str(refused.value)


def test_ledger_when_an_info_before_it_is_longer_than_rlms_then_its_info_is_found() -> None:
    """A protobuf writer may encode the number 7 in two bytes."""
    first_info_at = INDEX_HEADER_BYTES + 16
    info_bytes = FIRST_BLOCKS_AT - first_info_at
    content = bytearray(CONTENT)
    content[first_info_at : first_info_at + 2] = b"\x08\x87\x00"
    content[4:8] = len(content).to_bytes(4, "big")
    content[first_info_at - 4 : first_info_at] = (info_bytes + 1).to_bytes(4, "big")

    index = decode_stream_index(bytes(content), name="i")

    assert index == INDEX
    assert [each.info_position for each in index.ledgers] == [first_info_at, SECOND_AT + 16 + 1]


@pytest.mark.parametrize(("ledger_id", "number"), [(7, 0), (9, 1)])
def test_ledger_when_the_object_has_it_then_its_blocks(ledger_id: int, number: int) -> None:
    assert INDEX.ledger(ledger_id) is INDEX.ledgers[number]


@pytest.mark.parametrize("ledger_id", [0, 8, 10])
def test_ledger_when_the_object_lacks_it_then_none(ledger_id: int) -> None:
    assert INDEX.ledger(ledger_id) is None


@pytest.mark.parametrize(
    ("at", "packed", "where", "found"),
    [
        (0, struct.pack(">I", 0xDE47DE47), 0, "de47de47"),
        (4, struct.pack(">i", -1), 4, "-1"),
        (4, struct.pack(">i", 2**31 - 1), 4, "2147483647"),
        (8, struct.pack(">q", -1), 8, "-1"),
        (8, struct.pack(">q", 1_500), 8, "0"),
        (8, struct.pack(">q", 1_627), 8, "127"),
        (8, struct.pack(">q", 1_499), SECOND_BLOCKS_AT + 32, "1500"),
        (8, struct.pack(">q", 900), SECOND_BLOCKS_AT + 32, "1500"),
        (16, struct.pack(">q", -128), 16, "-128"),
        (16, struct.pack(">q", 35), 16, "35"),
        (16, struct.pack(">q", 2**62), 16, str(2**62)),
        (16, struct.pack(">q", 700), FIRST_BLOCKS_AT + 32, "500"),
        (24, struct.pack(">q", -1), 24, "-1"),
        (24, struct.pack(">q", 8), 40, "7"),
        (32, struct.pack(">i", 0), 32, "0"),
        (32, struct.pack(">i", -3), 32, "-3"),
        (32, struct.pack(">i", 2**31 - 1), 32, "2147483647"),
        (36, struct.pack(">i", -1), 36, "-1"),
        (36, struct.pack(">i", 2**31 - 1), 36, "2147483647"),
        (40, b"\xff" * 4, 40, "other bytes"),
        (FIRST_BLOCKS_AT, struct.pack(">q", -1), FIRST_BLOCKS_AT, "-1"),
        (FIRST_BLOCKS_AT, struct.pack(">q", 205), FIRST_BLOCKS_AT + 20, "205"),
        (FIRST_BLOCKS_AT + 12, struct.pack(">q", 1), FIRST_BLOCKS_AT + 12, "1"),
        (FIRST_BLOCKS_AT + 20, struct.pack(">q", 209), FIRST_BLOCKS_AT + 20, "209"),
        (FIRST_BLOCKS_AT + 32, struct.pack(">q", 127), FIRST_BLOCKS_AT + 32, "127"),
        (SECOND_BLOCKS_AT + 12, struct.pack(">q", 627), SECOND_BLOCKS_AT + 12, "627"),
        (SECOND_BLOCKS_AT + 32, struct.pack(">q", 2_001), SECOND_BLOCKS_AT + 32, "2001"),
        (SECOND_BLOCKS_AT + 32, struct.pack(">q", -1), SECOND_BLOCKS_AT + 32, "-1"),
    ],
)
def test_decode_when_a_field_is_invalid_then_corrupt_with_its_position(
    at: int, packed: bytes, where: int, found: str
) -> None:
    content = bytearray(CONTENT)
    content[at : at + len(packed)] = packed

    with pytest.raises(CorruptError) as raised:
        decode_stream_index(bytes(content), name="the index")

    context = raised.value.context
    assert (context["object"], context["position"]) == ("the index", where)
    assert found in str(context["found"])
    assert "expected" in context


def test_decode_when_ledgers_do_not_ascend_then_corrupt() -> None:
    twice = replace(INDEX, ledgers=(INDEX.ledgers[0], replace(INDEX.ledgers[1], ledger_id=7)))
    content = bytearray(encode_stream_index(twice)).replace(
        b"\x08\x09\x10\x08", b"\x08\x07\x10\x08"
    )

    with pytest.raises(CorruptError, match="ledger ids do not ascend") as raised:
        decode_stream_index(bytes(content), name="i")

    assert raised.value.context["position"] == SECOND_AT


def test_decode_when_there_is_no_ledger_then_corrupt() -> None:
    content = struct.pack(">Iiqq", 0x3D1FB0BC, 24, 0, 128)

    with pytest.raises(CorruptError, match="index has no ledgers"):
        decode_stream_index(content, name="i")


def test_decode_when_it_is_of_a_whole_ledger_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="found=de47de47"):
        decode_stream_index(INDEX_FILE.read_bytes(), name="i")


def test_decode_when_cut_anywhere_then_corrupt() -> None:
    for length in range(len(CONTENT)):
        with pytest.raises(CorruptError) as raised:
            decode_stream_index(CONTENT[:length], name="i")
        assert raised.value.context["position"] == (0 if length < INDEX_HEADER_BYTES else 4)


def test_decode_when_cut_with_a_length_that_agrees_then_corrupt() -> None:
    """An index cut at a ledger's end is a whole index of fewer ledgers with longer data."""
    for length in range(INDEX_HEADER_BYTES, len(CONTENT)):
        content = CONTENT[:4] + struct.pack(">i", length) + CONTENT[8:length]
        if length == SECOND_AT:
            assert len(decode_stream_index(content, name="i").ledgers) == 1
            continue
        with pytest.raises(CorruptError) as raised:
            decode_stream_index(content, name="i")
        assert {"object", "position", "expected", "found"} <= raised.value.context.keys()


@given(content=st.binary(max_size=300), is_length_right=st.booleans())
def test_decode_when_bytes_follow_the_magic_then_corrupt(
    content: bytes, is_length_right: bool
) -> None:
    magic = struct.pack(">I", 0x3D1FB0BC)
    if is_length_right:
        content = struct.pack(">i", len(content) + 8) + content

    with pytest.raises(CorruptError):
        decode_stream_index(magic + content, name="i")
