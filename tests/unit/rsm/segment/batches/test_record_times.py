"""The offset and timestamp of each record, without the record's content."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import TimestampType, parse_header
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType, decode_records, record_times
from rsm.segment.errors import CorruptError
from tests.segment_builder import (
    build_batch,
    build_control_batch,
    build_legacy_message,
    compress_payload,
    encode_record,
    pack_batch,
    record,
)
from tests.varints import encode_varint, encode_varlong

Times = tuple[tuple[int, int], ...]

_NUMBERS = st.one_of(
    st.sampled_from([0, 1, 63, 64, 8191, 8192, (1 << 31) - 1, -1]), st.integers(0, (1 << 31) - 1)
)


def times(batch: bytes) -> Times:
    return tuple(record_times(parse_header(memoryview(batch)), batch))


def decoded_times(batch: bytes) -> Times:
    found = decode_records(parse_header(memoryview(batch)), batch)
    return tuple((each.offset, each.timestamp_ms) for each in found)


def outcome(read: Callable[[bytes], Times], batch: bytes) -> Times | None:
    """Return the times, or None if the batch is corrupt."""
    try:
        return read(batch)
    except CorruptError:
        return None


@given(
    codec=st.sampled_from(CompressionType),
    offset_delta=st.integers(0, (1 << 31) - 1) | st.integers(0, 9000),
    delta_ms=st.integers(-(1 << 60), 1 << 60) | st.integers(-9000, 9000),
    value_bytes=st.integers(0, 300) | st.sampled_from([1 << 14, 1 << 20]),
    timestamp_type=st.sampled_from(TimestampType),
)
def test_times_when_numbers_take_any_count_of_bytes_then_as_decoded(
    codec: CompressionType,
    offset_delta: int,
    delta_ms: int,
    value_bytes: int,
    timestamp_type: TimestampType,
) -> None:
    content = [
        record(5, b"first", timestamp_ms=0, headers=[("name", b"value")]),
        record(5 + offset_delta, bytes(value_bytes), key=b"key", timestamp_ms=delta_ms),
    ]
    batch = build_batch(content, codec=codec, timestamp_type=timestamp_type)

    assert times(batch) == decoded_times(batch)
    assert len(times(batch)) == 2


@given(
    length_change=st.integers(-12, 2) | st.sampled_from([-(1 << 30), 1 << 20]),
    delta=_NUMBERS,
    delta_ms=_NUMBERS,
    record_count=st.integers(0, 3),
    cut=st.integers(0, 3) | st.integers(0, 30),
    bytes_after=st.integers(0, 8),
)
def test_times_when_a_length_or_a_delta_is_invalid_then_corrupt_as_when_decoded(
    length_change: int, delta: int, delta_ms: int, record_count: int, cut: int, bytes_after: int
) -> None:
    """The rest of the record is valid, so that only these numbers differ."""
    body = b"\x00" + encode_varlong(delta_ms) + encode_varint(delta) + b"\x01\x01\x00"
    payload = encode_record(record(0), 0, 0) + encode_varint(len(body) + length_change) + body
    payload = payload[: len(payload) - cut] + b"\x01" * bytes_after
    batch = pack_batch(payload, last_offset=100, record_count=record_count)

    found, decoded = outcome(times, batch), outcome(decoded_times, batch)

    # The decoder also checks the content: with other lengths, other bytes are the content.
    assert found == decoded or (decoded is None and (length_change or cut) and bytes_after)


@pytest.mark.parametrize(
    ("payload", "record_count"),
    [
        (b"", 1),
        (encode_record(record(0), 0, 0), 2),
        (encode_record(record(0), 0, 0), (1 << 31) - 1),
        (encode_record(record(0), 0, 0) + b"\x00", 1),
        (encode_record(record(0), 0, 0)[:-1], 1),
        (encode_varint(0) + bytes(10), 1),
        (encode_varint(-5) + bytes(10), 1),
        (encode_varint(5) + bytes(6), 1),
        (encode_varint((1 << 31) - 1) + bytes(10), 1),
        (encode_varint(6) + b"\x00\x00" + encode_varint(1) + bytes(3), 1),
        (encode_varint(6) + b"\x00\x00" + encode_varint(-1) + bytes(3), 1),
        (encode_varint(12) + b"\x00" + b"\xff" * 11, 1),
        (encode_varint(6) + b"\x00" + b"\xff" * 5, 1),
    ],
    ids=[
        "no record",
        "fewer records",
        "absurd count",
        "bytes after",
        "cut short",
        "empty record",
        "negative length",
        "no room for the content",
        "huge record",
        "offset after the batch",
        "offset before the batch",
        "timestamp delta too wide",
        "timestamp delta cut short",
    ],
)
def test_times_when_payload_is_not_what_it_says_then_corrupt(
    payload: bytes, record_count: int
) -> None:
    batch = pack_batch(payload, record_count=record_count)

    assert outcome(decoded_times, batch) is None
    with pytest.raises(CorruptError):
        times(batch)


def test_times_when_a_record_has_millions_of_headers_then_its_content_is_skipped() -> None:
    """A list of these headers takes more than 200 MiB; the bound rejects such a record."""
    count = 2_000_000
    body = b"\x00\x00\x00\x01\x01" + encode_varint(count) + b"\x00\x01" * count
    payload = compress_payload(CompressionType.ZSTD, encode_varint(len(body)) + body)
    batch = pack_batch(payload, base_offset=7, last_offset=7, attributes=4, record_count=1)

    tracemalloc.start()
    try:
        found = times(batch)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == ((7, 0),)
    assert peak_bytes < 4 * len(body)


def test_times_when_a_later_record_is_corrupt_then_the_earlier_ones_come_first() -> None:
    payload = encode_record(record(0, timestamp_ms=0), 0, 0) * 2 + encode_varint(-5) + bytes(10)
    batch = pack_batch(payload, record_count=3)
    found = record_times(parse_header(memoryview(batch)), batch)

    assert list(islice(found, 2)) == [(0, 0), (0, 0)]
    with pytest.raises(CorruptError, match="malformed"):
        next(found)


@pytest.mark.parametrize("magic", [0, 1])
def test_times_when_messages_are_legacy_then_as_decoded(magic: int) -> None:
    inner = [
        build_legacy_message(n, b"%d" % n, magic=magic, timestamp_ms=1_000 + n) for n in (0, 1, 4)
    ]
    value = compress_payload(CompressionType.GZIP, b"".join(inner))
    wrapper = build_legacy_message(9, value, magic=magic, attributes=CompressionType.GZIP)

    assert [len(times(each)) for each in (inner[2], wrapper)] == [1, 3]
    assert times(inner[2]) == decoded_times(inner[2])
    assert times(wrapper) == decoded_times(wrapper)


def test_times_when_batch_is_a_marker_then_none() -> None:
    assert times(build_control_batch(40, ControlType.ABORT, producer_id=5)) == ()


def test_times_when_batch_was_emptied_by_compaction_then_none() -> None:
    assert times(pack_batch(b"", base_offset=5, last_offset=9, attributes=4)) == ()
