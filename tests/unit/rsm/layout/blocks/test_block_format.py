from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.blocks.block_format import (
    HEADER_BYTES,
    BlockHeader,
    check_padding,
    decode_header,
    encode_header,
    padding,
)
from rsm.segment.errors import CorruptError


@given(block_bytes=st.integers(HEADER_BYTES, 2**63 - 1), first_entry_id=st.integers(0, 2**63 - 1))
def test_header_when_encoded_then_decoded_to_the_same(
    block_bytes: int, first_entry_id: int
) -> None:
    header = BlockHeader(block_bytes=block_bytes, first_entry_id=first_entry_id)

    content = encode_header(header)

    assert len(content) == 128
    assert decode_header(content, name="o", position=0) == header


def test_header_when_encoded_then_the_bytes_are_the_proposals() -> None:
    content = encode_header(BlockHeader(block_bytes=65_536, first_entry_id=43))

    assert content.hex() == (
        "fbdbabcb" + "0000000000000080" + "0000000000010000" + "000000000000002b" + "00" * 100
    )


@given(content=st.binary(max_size=140))
def test_decode_header_when_bytes_are_any_then_a_header_or_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_header(content, name="o", position=0)


@pytest.mark.parametrize(
    ("at", "change", "expected"),
    [
        (0, b"\x26\xa6\x6d\x32", "object=o, position=1000, expected=fbdbabcb, found=26a66d32"),
        (4, b"\xff" * 8, "position=1004.*found=-1"),
        (4, b"\x7f" + b"\xff" * 7, "position=1004"),
        (12, b"\xff" * 8, "position=1004"),
        (20, b"\xff" * 8, "position=1020, expected=>= 0, found=-1"),
    ],
)
def test_decode_header_when_a_field_cannot_be_then_corrupt_where_it_is(
    at: int, change: bytes, expected: str
) -> None:
    content = bytearray(encode_header(BlockHeader(block_bytes=500, first_entry_id=7)))
    content[at : at + len(change)] = change

    with pytest.raises(CorruptError, match=expected):
        decode_header(bytes(content), name="o", position=1000)


@given(length=st.integers(0, 50), cuts=st.lists(st.integers(0, 50), max_size=4))
def test_check_padding_when_it_comes_in_pieces_then_each_continues_with_the_pattern(
    length: int, cuts: list[int]
) -> None:
    whole = padding(length)
    bounds = [0, *sorted(min(cut, length) for cut in cuts), length]

    for start, end in itertools.pairwise(bounds):
        check_padding(whole[start:end], name="o", position=start, phase=start)

    assert (bytes.fromhex("fedcdead") * 13).startswith(whole)
    assert len(whole) == length


@given(length=st.integers(1, 50), data=st.data())
def test_check_padding_when_a_byte_differs_then_corrupt_at_its_position(
    length: int, data: st.DataObject
) -> None:
    wrong = data.draw(st.integers(0, length - 1))
    content = bytearray(padding(length))
    content[wrong] ^= data.draw(st.integers(1, 255))

    with pytest.raises(CorruptError) as raised:
        check_padding(memoryview(content), name="o", position=100)

    assert raised.value.context["position"] == 100 + wrong
