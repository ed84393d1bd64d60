from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.varint import (
    ONE_BYTE,
    TWO_BYTES,
    read_varint,
    read_varlong,
)
from rsm.segment.errors import CorruptError
from tests.varints import encode_varint, encode_varlong

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(value=INT32, before=st.binary(max_size=3), behind=st.binary(max_size=3))
def test_varint_when_written_and_read_then_value_and_position_come_back(
    value: int, before: bytes, behind: bytes
) -> None:
    encoded = encode_varint(value)

    assert read_varint(before + encoded + behind, len(before)) == (
        value,
        len(before) + len(encoded),
    )


def test_tables_when_any_number_of_one_or_two_bytes_then_its_value() -> None:
    numbers = range(-(1 << 13), 1 << 13)
    encoded = [encode_varint(number) for number in numbers]

    found = [
        TWO_BYTES[each[0]][each[1]] if len(each) == 2 else ONE_BYTE[each[0]] for each in encoded
    ]

    assert found == list(numbers)


@given(value=INT64, behind=st.binary(max_size=3))
def test_varlong_when_written_and_read_then_value_and_position_come_back(
    value: int, behind: bytes
) -> None:
    encoded = encode_varlong(value)

    assert read_varlong(encoded + behind, 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2147483647, "feffffff0f"),
        (-2147483648, "ffffffff0f"),
    ],
)
def test_read_varint_when_bytes_are_those_of_kafka_then_the_value(value: int, encoded: str) -> None:
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize("encoded", ["", "80", "8080", "ffffffff"])
def test_read_varint_when_data_ends_within_it_then_corrupt(encoded: str) -> None:
    with pytest.raises(CorruptError, match="truncated"):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["ffffffff10", "808080808000", "ffffffffffff01"])
def test_read_varint_when_wider_than_32_bits_then_corrupt(encoded: str) -> None:
    with pytest.raises(CorruptError, match="too wide"):
        read_varint(bytes.fromhex(encoded), 0)


def test_read_varlong_when_wider_than_64_bits_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="too wide"):
        read_varlong(b"\xff" * 9 + b"\x02", 0)


@given(data=st.binary(max_size=12))
def test_read_varlong_when_data_is_random_then_value_or_corrupt(data: bytes) -> None:
    try:
        value, position = read_varlong(data, 0)
    except CorruptError:
        return

    assert -(1 << 63) <= value < 1 << 63
    assert 0 < position <= len(data)
