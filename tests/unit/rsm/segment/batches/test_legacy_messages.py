from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import TimestampType, parse_header
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import Record, decode_records
from rsm.segment.errors import CorruptError
from tests.segment_builder import build_legacy_message, compress_payload

LOG_APPEND_TIME = 8


def decode(message: bytes) -> tuple[Record, ...]:
    return decode_records(parse_header(memoryview(message)), message)


def wrap(magic: int, offset: int, inner: list[bytes], attributes: int = 1) -> bytes:
    """Return a compressed message around `inner`."""
    payload = compress_payload(CompressionType(attributes & 7), b"".join(inner))
    return build_legacy_message(
        offset, payload, magic=magic, attributes=attributes, timestamp_ms=99_000
    )


@given(
    magic=st.integers(0, 1),
    key=st.none() | st.binary(max_size=50),
    value=st.none() | st.binary(max_size=50),
    timestamp_ms=st.integers(0, 1 << 45),
)
def test_decode_when_message_is_plain_then_its_fields_come_back(
    magic: int, key: bytes | None, value: bytes | None, timestamp_ms: int
) -> None:
    message = build_legacy_message(7, value, magic=magic, key=key, timestamp_ms=timestamp_ms)

    (found,) = decode(message)

    assert (found.offset, found.key, found.value, found.headers) == (7, key, value, ())
    assert found.timestamp_ms == (timestamp_ms if magic else -1)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_decode_when_magic_1_is_compressed_then_relative_offsets_are_made_absolute(
    codec: int,
) -> None:
    inner = [build_legacy_message(n, b"%d" % n, magic=1, timestamp_ms=1_000 + n) for n in (0, 1, 4)]

    found = decode(wrap(1, 104, inner, attributes=codec))

    assert [(each.offset, each.timestamp_ms, each.value) for each in found] == [
        (100, 1_000, b"0"),
        (101, 1_001, b"1"),
        (104, 1_004, b"4"),
    ]


def test_decode_when_magic_0_is_compressed_then_offsets_are_absolute_already() -> None:
    inner = [build_legacy_message(n, b"v", magic=0) for n in (100, 101)]

    assert [each.offset for each in decode(wrap(0, 101, inner))] == [100, 101]


def test_decode_when_broker_set_the_timestamp_of_a_wrapper_then_all_have_it() -> None:
    inner = [build_legacy_message(n, b"v", magic=1, timestamp_ms=5) for n in range(2)]

    found = decode(wrap(1, 11, inner, attributes=1 | LOG_APPEND_TIME))

    assert [each.timestamp_ms for each in found] == [99_000, 99_000]
    assert {each.timestamp_type for each in found} == {TimestampType.LOG_APPEND_TIME}


@pytest.mark.parametrize(
    "message",
    [
        wrap(1, 5, []),
        wrap(1, 5, [build_legacy_message(0, b"v", magic=0)]),
        wrap(1, 5, [build_legacy_message(0, b"v", magic=1)[:-1]]),
        wrap(1, 5, [wrap(1, 0, [build_legacy_message(0, b"v", magic=1)])]),
        build_legacy_message(5, None, magic=1, attributes=1),
        build_legacy_message(5, b"not compressed", magic=1, attributes=1),
    ],
    ids=["empty", "another magic", "cut short", "nested", "no value", "not compressed"],
)
def test_decode_when_a_wrapper_is_not_what_it_says_then_corrupt(message: bytes) -> None:
    with pytest.raises(CorruptError):
        decode(message)


@given(magic=st.integers(0, 1), position=st.integers(0, 60), value=st.integers(0, 255))
def test_decode_when_a_byte_is_changed_then_records_or_corrupt(
    magic: int, position: int, value: int
) -> None:
    message = bytearray(build_legacy_message(5, b"value", magic=magic, key=b"key"))
    message[18 + position % (len(message) - 18)] = value

    try:
        found = decode(bytes(message))
    except CorruptError:
        return

    assert len(found) == 1
