from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v1.block_index import (
    INDEX_HEADER_BYTES,
    BlockIndex,
    decode_index,
    encode_index,
)
from rsm.layout.blocks.block_sequence import IndexedBlock
from rsm.layout.blocks.ledger_metadata import LedgerMetadata
from rsm.segment.errors import CorruptError
from tests.golden_ledger import INDEX_FILE, STREAM_INDEX_FILE

INDEX = BlockIndex(
    metadata=LedgerMetadata(length_bytes=700, last_entry_id=12),
    data_bytes=1_500,
    blocks=(
        IndexedBlock(first_entry_id=0, part=1, position=0),
        IndexedBlock(first_entry_id=5, part=2, position=600),
        IndexedBlock(first_entry_id=9, part=3, position=1_200),
    ),
)
BLOCKS_AT = len(encode_index(INDEX)) - 3 * 20


@st.composite
def indexes(draw: st.DrawFn) -> BlockIndex:
    entry_ids = sorted(draw(st.sets(st.integers(0, 2**62), min_size=1, max_size=20)))
    lengths = draw(
        st.lists(st.integers(128, 2**31), min_size=len(entry_ids), max_size=len(entry_ids))
    )
    starts = [sum(lengths[:n]) for n in range(len(lengths))]
    blocks = tuple(
        IndexedBlock(first_entry_id=entry_id, part=part, position=start)
        for part, (entry_id, start) in enumerate(zip(entry_ids, starts, strict=True), start=1)
    )
    metadata = LedgerMetadata(
        length_bytes=draw(st.integers(0, 2**63 - 1)),
        last_entry_id=draw(st.integers(entry_ids[-1], 2**63 - 1)),
    )
    return BlockIndex(metadata=metadata, data_bytes=sum(lengths), blocks=blocks)


@given(index=indexes())
def test_index_when_encoded_then_decoded_to_the_same(index: BlockIndex) -> None:
    assert decode_index(encode_index(index), name="i") == index


def test_index_when_pulsar_wrote_it_then_encoded_to_its_bytes() -> None:
    content = INDEX_FILE.read_bytes()

    index = decode_index(content, name="i")

    assert encode_index(index) == content
    assert index.data_bytes == 492_330
    assert [block.first_entry_id for block in index.blocks] == [0, 43, 45, 81, 167, 168, 169, 170]
    assert [block.part for block in index.blocks] == list(range(1, 9))


@pytest.mark.parametrize(("entry_id", "number"), [(0, 0), (4, 0), (5, 1), (8, 1), (9, 2), (12, 2)])
def test_block_number_when_asked_then_the_block_of_the_entry(entry_id: int, number: int) -> None:
    assert INDEX.block_number(entry_id) == number
    end_entry_id = INDEX.block_end_entry_id(number)
    assert end_entry_id is not None
    assert INDEX.blocks[number].first_entry_id <= entry_id < end_entry_id


@pytest.mark.parametrize(
    ("at", "packed", "where", "found"),
    [
        (0, struct.pack(">I", 0x3D1FB0BC), 0, "3d1fb0bc"),
        (4, struct.pack(">i", -1), 4, "-1"),
        (4, struct.pack(">i", 2**31 - 1), 4, "2147483647"),
        (8, struct.pack(">q", -1), 8, "-1"),
        (8, struct.pack(">q", 1_250), 8, "50"),
        (8, struct.pack(">q", 1_100), BLOCKS_AT + 52, "1200"),
        (16, struct.pack(">q", -128), 16, "-128"),
        (16, struct.pack(">q", 2**62), 16, str(2**62)),
        (16, struct.pack(">q", 700), BLOCKS_AT + 32, "600"),
        (24, struct.pack(">i", 0), 24, "0"),
        (24, struct.pack(">i", -3), 24, "-3"),
        (24, struct.pack(">i", 2**31 - 1), 24, "2147483647"),
        (28, struct.pack(">i", -1), 24, "4294967295"),
        (28, struct.pack(">i", 2**31 - 1), 24, "2147483647"),
        (32, b"\xff" * 4, 32, "other bytes"),
        (BLOCKS_AT, struct.pack(">q", -1), BLOCKS_AT, "-1"),
        (BLOCKS_AT, struct.pack(">q", 5), BLOCKS_AT + 20, "5"),
        (BLOCKS_AT + 12, struct.pack(">q", 1), BLOCKS_AT + 12, "1"),
        (BLOCKS_AT + 32, struct.pack(">q", 100), BLOCKS_AT + 32, "100"),
        (BLOCKS_AT + 32, struct.pack(">q", -1), BLOCKS_AT + 32, "-1"),
        (BLOCKS_AT + 52, struct.pack(">q", 1_501), BLOCKS_AT + 52, "1501"),
        (BLOCKS_AT + 40, struct.pack(">q", 13), BLOCKS_AT + 40, "13"),
    ],
)
def test_decode_when_a_field_cannot_be_then_corrupt_where_it_is(
    at: int, packed: bytes, where: int, found: str
) -> None:
    content = bytearray(encode_index(INDEX))
    content[at : at + len(packed)] = packed

    with pytest.raises(CorruptError) as raised:
        decode_index(bytes(content), name="the index")

    context = raised.value.context
    assert (context["object"], context["position"]) == ("the index", where)
    assert found in str(context["found"])
    assert "expected" in context


def test_decode_when_there_is_no_block_at_all_then_corrupt() -> None:
    """All lengths agree; only the count of blocks is wrong."""
    content = bytearray(encode_index(INDEX)[:BLOCKS_AT])
    struct.pack_into(">i", content, 4, len(content))
    struct.pack_into(">i", content, 24, 0)

    with pytest.raises(CorruptError, match="the index has no blocks"):
        decode_index(bytes(content), name="i")


def test_decode_when_it_is_the_streaming_formats_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="found=3d1fb0bc"):
        decode_index(STREAM_INDEX_FILE.read_bytes(), name="i")


def test_decode_when_cut_anywhere_then_corrupt() -> None:
    content = encode_index(INDEX)

    for length in range(len(content)):
        with pytest.raises(CorruptError) as raised:
            decode_index(content[:length], name="i")
        within_header = length < INDEX_HEADER_BYTES
        assert raised.value.context["position"] == (0 if within_header else 4)


@given(content=st.binary(max_size=300))
def test_decode_when_bytes_follow_the_magic_then_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_index(struct.pack(">I", 0xDE47DE47) + content, name="i")


@pytest.mark.parametrize("field", [1, 2, 3, 5])
def test_decode_when_metadata_lacks_what_bookkeeper_requires_then_corrupt(field: int) -> None:
    content = encode_index(INDEX)
    fields = {1: b"\x08\x01", 2: b"\x10\x01", 3: b"\x18\xbc\x05", 5: b"\x28\x03"}
    metadata = content[INDEX_HEADER_BYTES:BLOCKS_AT].replace(fields[field], b"", 1)
    lengths = struct.pack(">ii", 3, len(metadata))
    head = content[:24] + lengths + metadata + content[BLOCKS_AT:]
    changed = head[:4] + struct.pack(">i", len(head)) + head[8:]

    with pytest.raises(CorruptError, match="lacks a field"):
        decode_index(changed, name="i")
