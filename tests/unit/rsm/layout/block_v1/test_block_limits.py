"""The minimum and maximum values in headers and indexes of blocks."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from rsm.layout.block_v1.block_index import BlockIndex, decode_index, encode_index
from rsm.layout.blocks.block_format import (
    DEFAULT_BLOCK_BYTES,
    ENTRY_HEADER_BYTES,
    HEADER_BYTES,
    MAX_BLOCK_BYTES,
    MAX_ENTRY_BYTES,
    MIN_BLOCK_BYTES,
    BlockFormat,
    BlockHeader,
    decode_header,
    encode_header,
)
from rsm.layout.blocks.block_sequence import MAX_INDEX_BYTES, IndexedBlock
from rsm.layout.blocks.ledger_metadata import LedgerMetadata
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.unit.rsm.layout.block_v1.test_block_index import INDEX


def of_one_block(data_bytes: int, *, last_entry_id: int = 0) -> BlockIndex:
    return BlockIndex(
        metadata=LedgerMetadata(length_bytes=700, last_entry_id=last_entry_id),
        data_bytes=data_bytes,
        blocks=(IndexedBlock(first_entry_id=0, part=1, position=0),),
    )


def test_sizes_when_compared_then_those_of_the_format() -> None:
    """The maximum is Pulsar's int; the smallest block has its header and that of an empty entry."""
    assert struct.unpack(">i", struct.pack(">i", MAX_BLOCK_BYTES)) == (2**31 - 1,)
    assert (HEADER_BYTES, ENTRY_HEADER_BYTES) == (128, 12)
    assert [each.min_header_bytes for each in (BlockFormat.V1, BlockFormat.V2)] == [28, 36]
    assert (MIN_BLOCK_BYTES, MAX_ENTRY_BYTES) == (140, 2**31 - 1 - 140)


def test_block_when_its_size_is_not_configured_then_pulsars_default() -> None:
    """PIP-17's managedLedgerOffloadMaxBlockSizeInBytes."""
    assert DEFAULT_BLOCK_BYTES == 64 * 1024 * 1024


@pytest.mark.parametrize("header_bytes", [28, 500])
def test_header_when_as_long_as_its_fields_or_as_its_block_then_read(header_bytes: int) -> None:
    header = BlockHeader(block_bytes=500, first_entry_id=0, header_bytes=header_bytes)

    assert decode_header(encode_header(header), name="o", position=0) == header


@pytest.mark.parametrize("header_bytes", [27, 501])
def test_header_when_shorter_than_its_fields_or_longer_than_its_block_then_corrupt(
    header_bytes: int,
) -> None:
    content = struct.pack(">Iqqq", 0xFBDBABCB, header_bytes, 500, 0)

    with pytest.raises(CorruptError, match="block header length"):
        decode_header(content, name="o", position=0)


def test_header_when_a_byte_too_short_then_corrupt() -> None:
    content = encode_header(BlockHeader(block_bytes=500, first_entry_id=0))[:28]
    assert decode_header(content, name="o", position=0).block_bytes == 500

    with pytest.raises(CorruptError, match="truncated"):
        decode_header(content[:27], name="o", position=0)


@pytest.mark.parametrize("data_bytes", [0, HEADER_BYTES])
def test_index_when_nothing_or_one_header_was_written_then_read(data_bytes: int) -> None:
    index = of_one_block(data_bytes)

    assert decode_index(encode_index(index), name="i") == index


def test_index_when_nothing_of_the_last_block_was_written_then_ends_where_it_begins() -> None:
    assert of_one_block(0).end_entry_id == 0
    assert of_one_block(HEADER_BYTES, last_entry_id=4).end_entry_id == 5


def test_index_when_data_ends_within_a_header_then_corrupt() -> None:
    for index in (of_one_block(1), of_one_block(HEADER_BYTES - 1)):
        with pytest.raises(CorruptError, match="within a block header"):
            decode_index(encode_index(index), name="i")


@pytest.mark.parametrize(("position", "is_read"), [(128, True), (127, False), (1_200, False)])
def test_index_when_a_block_is_one_header_long_then_read(position: int, *, is_read: bool) -> None:
    blocks = (INDEX.blocks[0], replace(INDEX.blocks[1], position=position), INDEX.blocks[2])
    content = encode_index(replace(INDEX, blocks=blocks))
    if is_read:
        assert decode_index(content, name="i").blocks == blocks
        return

    with pytest.raises(CorruptError, match="the block position is invalid"):
        decode_index(content, name="i")


@pytest.mark.parametrize(("last_entry_id", "is_read"), [(9, True), (8, False)])
def test_index_when_its_last_block_begins_with_the_last_entry_then_read(
    last_entry_id: int, *, is_read: bool
) -> None:
    metadata = replace(INDEX.metadata, last_entry_id=last_entry_id)
    content = encode_index(replace(INDEX, metadata=metadata))
    if is_read:
        assert decode_index(content, name="i").last_entry_id == last_entry_id
        return

    with pytest.raises(CorruptError, match="after the last entry"):
        decode_index(content, name="i")


@pytest.mark.parametrize(
    ("number", "position", "entry_id"), [(0, 600, 5), (1, 1_200, 9), (2, 1_500, 13)]
)
def test_block_when_asked_for_its_end_then_where_the_next_begins_or_the_data_ends(
    number: int, position: int, entry_id: int
) -> None:
    assert INDEX.block_end_position(number) == position
    assert INDEX.block_end_entry_id(number) == entry_id


def test_index_when_readers_would_refuse_its_length_then_not_encoded() -> None:
    most_bytes = MAX_INDEX_BYTES - len(encode_index(with_custom(0)))
    longest = encode_index(with_custom(most_bytes - 2 * 3))  # the lengths take 3 bytes more, twice

    assert decode_index(longest, name="i").last_entry_id == INDEX.last_entry_id
    assert MAX_INDEX_BYTES - len(longest) < 10
    with pytest.raises(UnsupportedError, match="too long") as refused:
        encode_index(with_custom(most_bytes + 10))
    assert f"at most {MAX_INDEX_BYTES} bytes" in str(refused.value)


def with_custom(length_bytes: int) -> BlockIndex:
    metadata = replace(INDEX.metadata, custom=(("k", bytes(length_bytes)),))
    return replace(INDEX, metadata=metadata)
