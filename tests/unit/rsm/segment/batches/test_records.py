from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import HEADER_BYTES, TimestampType, parse_header
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import (
    ControlRecord,
    ControlType,
    Record,
    decode_control_record,
    decode_records,
    record_times,
)
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.segment_builder import (
    build_batch,
    build_control_batch,
    encode_record,
    pack_batch,
    record,
    records,
)
from tests.unit.rsm.segment.batches.plain_records import plain_records
from tests.varints import encode_varint

Reader = Callable[..., Iterable[Any]]
READERS: tuple[Reader, ...] = (decode_records, record_times)
_LENGTHS = st.sampled_from([0, 1, 63, 64, 65, 200, 8191, 8192, 8193, 1 << 20])


@st.composite
def ascending_records(draw: st.DrawFn) -> list[Record]:
    """Draw records as a batch has them: sparse offsets, any timestamps, any content."""
    offsets = draw(st.sets(st.integers(0, 5_000), min_size=1, max_size=8))
    base = draw(st.integers(0, 1 << 60))
    nullable = st.none() | st.binary(max_size=300)
    headers = st.lists(st.tuples(st.text(max_size=5), nullable), max_size=3)
    return [
        record(
            base + offset,
            draw(nullable),
            key=draw(nullable),
            timestamp_ms=draw(st.integers(0, 1 << 45)),
            headers=draw(headers),
        )
        for offset in sorted(offsets)
    ]


def decode(batch: bytes) -> tuple[Record, ...]:
    return decode_records(parse_header(memoryview(batch)), batch)


@given(content=ascending_records(), codec=st.sampled_from(CompressionType))
def test_decode_when_built_with_any_codec_then_records_come_back(
    content: list[Record], codec: CompressionType
) -> None:
    assert decode(build_batch(content, codec=codec)) == tuple(content)


@given(
    key_bytes=_LENGTHS,
    value_bytes=_LENGTHS,
    name_bytes=_LENGTHS,
    offset_delta=st.integers(0, (1 << 31) - 1),
    delta_ms=st.integers(-(1 << 60), 1 << 60),
)
def test_decode_when_numbers_take_any_count_of_bytes_then_records_come_back(
    key_bytes: int, value_bytes: int, name_bytes: int, offset_delta: int, delta_ms: int
) -> None:
    content = [
        record(5, timestamp_ms=0),
        record(
            5 + offset_delta,
            bytes(value_bytes),
            key=bytes(key_bytes),
            timestamp_ms=delta_ms,
            headers=[("n" * name_bytes, bytes(key_bytes)), ("", None)],
        ),
    ]

    assert decode(build_batch(content)) == tuple(content)


@given(content=ascending_records(), data=st.data())
def test_decode_when_bytes_of_the_records_are_others_then_as_read_number_by_number(
    content: list[Record], data: st.DataObject
) -> None:
    payload = bytearray(build_batch(content)[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(0, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)) | st.just(len(payload)))
    batch = pack_batch(
        bytes(payload[:cut]),
        last_offset=data.draw(st.just(5_000) | st.integers(0, 100)),
        attributes=data.draw(st.sampled_from([0, 8])),
        base_timestamp_ms=1_000,
        max_timestamp_ms=2_000,
        record_count=len(content),
    )

    assert _outcome(decode, batch) == _outcome(
        lambda each: plain_records(parse_header(memoryview(each)), each), batch
    )


def _outcome(
    decoded: Callable[[bytes], tuple[Record, ...]], batch: bytes
) -> tuple[Record, ...] | None:
    """Return the decoded records, or None if the batch is corrupt."""
    try:
        return decoded(batch)
    except CorruptError:
        return None


def test_decode_when_snappy_is_without_blocks_then_records_come_back() -> None:
    content = records(5)
    batch = build_batch(
        content,
        codec=CompressionType.SNAPPY,
        compress=lambda _, plain: bytes(cramjam.snappy.compress_raw(plain)),
    )

    assert decode(batch) == content


def test_decode_when_broker_set_the_timestamps_then_all_have_the_batchs_maximum() -> None:
    batch = build_batch(
        records(3), timestamp_type=TimestampType.LOG_APPEND_TIME, append_time_ms=12_345
    )

    assert [(each.timestamp_ms, each.timestamp_type) for each in decode(batch)] == [
        (12_345, TimestampType.LOG_APPEND_TIME)
    ] * 3


def test_decode_when_base_timestamp_is_a_delete_horizon_then_timestamps_are_right() -> None:
    content = records(3)
    batch = build_batch(content, delete_horizon_ms=1_600_000_000_000)

    assert decode(batch) == content


def test_decode_when_batch_was_emptied_by_compaction_then_no_records() -> None:
    assert decode(pack_batch(b"", base_offset=5, last_offset=9, attributes=4)) == ()


def test_decode_when_a_header_name_is_not_utf8_then_shown_with_replacements() -> None:
    body = bytes(3) + encode_varint(-1) * 2 + encode_varint(1) + encode_varint(1) + b"\xff"
    body += encode_varint(-1)
    batch = pack_batch(encode_varint(len(body)) + body, record_count=1)

    assert decode(batch)[0].headers == (("\ufffd", None),)


@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT])
def test_decode_control_when_batch_is_a_marker_then_its_fields_are_read(
    control_type: ControlType,
) -> None:
    batch = build_control_batch(
        40, control_type, producer_id=5, producer_epoch=6, coordinator_epoch=7, timestamp_ms=8
    )

    assert decode_control_record(parse_header(memoryview(batch)), batch) == ControlRecord(
        offset=40,
        timestamp_ms=8,
        type=control_type,
        producer_id=5,
        producer_epoch=6,
        coordinator_epoch=7,
    )


def test_decode_when_batch_is_a_marker_then_no_records() -> None:
    assert decode(build_control_batch(40, ControlType.ABORT, producer_id=5)) == ()


def test_decode_control_when_the_type_is_newer_then_unknown() -> None:
    marker = record(3, b"", key=struct.pack(">hh", 0, 99))
    batch = build_batch([marker], is_control=True)

    found = decode_control_record(parse_header(memoryview(batch)), batch)

    assert found.type is ControlType.UNKNOWN


@pytest.mark.parametrize(
    "batch",
    [
        build_batch(records(1)),
        build_batch(records(2), is_control=True),
        build_batch([record(0, key=b"\x00")], is_control=True),
        build_batch([record(0, b"\x00", key=struct.pack(">hh", 0, 1))], is_control=True),
    ],
    ids=["no control batch", "two records", "key cut short", "value cut short"],
)
def test_decode_control_when_not_one_whole_marker_then_corrupt(batch: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_control_record(parse_header(memoryview(batch)), batch)


ONE_RECORD = encode_record(record(0), 0, 0)
BODY_START = bytes(3)  # attributes, no deltas


@pytest.mark.parametrize(
    ("payload", "record_count"),
    [
        (b"", 1),
        (ONE_RECORD, 2),
        (ONE_RECORD, (1 << 31) - 1),
        (ONE_RECORD + b"\x00", 1),
        (ONE_RECORD[:-1], 1),
        (encode_varint(0) + bytes(10), 1),
        (encode_varint(-5) + bytes(10), 1),
        (encode_varint((1 << 31) - 1) + bytes(10), 1),
        (encode_varint(9) + BODY_START + encode_varint(-2) + bytes(8), 1),
        (encode_varint(9) + BODY_START + encode_varint(100) + bytes(8), 1),
        (encode_varint(9) + BODY_START + bytes(2) + encode_varint(-1) + bytes(8), 1),
        (encode_varint(10) + BODY_START + bytes(2) + encode_varint(1 << 20) + bytes(8), 1),
        (encode_varint(8) + BODY_START + bytes(2) + encode_varint(1) + b"\x01\x01", 1),
        (encode_varint(7) + BODY_START + bytes(2) + bytes(4), 1),
        (encode_varint(6) + b"\x00\x00" + encode_varint(1) + bytes(3), 1),
    ],
    ids=[
        "no record",
        "fewer records",
        "absurd count",
        "bytes after",
        "cut short",
        "empty record",
        "record count is negative",
        "huge record",
        "negative key",
        "key too long",
        "negative header count",
        "absurd header count",
        "header without name",
        "record too long",
        "offset after the batch",
    ],
)
def test_decode_when_payload_is_not_what_it_says_then_corrupt(
    payload: bytes, record_count: int
) -> None:
    with pytest.raises(CorruptError):
        decode(pack_batch(payload, record_count=record_count))


def test_decode_when_a_record_has_more_headers_than_the_bound_then_corrupt() -> None:
    most = build_batch([record(0, headers=[("", None)] * 1_000_000)])
    more = build_batch([record(0, headers=[("", None)] * 1_000_001)])

    assert len(decode(most)[0].headers) == 1_000_000
    with pytest.raises(CorruptError, match="header count"):
        decode(more)


@given(payload=st.binary(max_size=100), count=st.integers(0, 1 << 30), attributes=st.integers(0, 4))
def test_decode_when_payload_is_random_then_records_or_corrupt(
    payload: bytes, count: int, attributes: int
) -> None:
    batch = pack_batch(payload, record_count=count, attributes=attributes, last_offset=1_000)
    header = parse_header(memoryview(batch))

    try:
        found = decode_records(header, batch, max_decompressed_bytes=10_000)
    except CorruptError:
        return

    assert len(found) == count


@pytest.mark.parametrize("read", READERS)
def test_batch_when_compressed_beyond_the_bound_then_corrupt(read: Reader) -> None:
    batch = build_batch([record(0, bytes(100_000))], codec=CompressionType.ZSTD)

    with pytest.raises(CorruptError, match="too large"):
        list(read(parse_header(memoryview(batch)), batch, max_decompressed_bytes=50_000))


@pytest.mark.parametrize("read", READERS)
def test_batch_when_the_codec_is_unknown_then_unsupported(read: Reader) -> None:
    batch = pack_batch(b"something", record_count=1, attributes=5)

    with pytest.raises(UnsupportedError):
        list(read(parse_header(memoryview(batch)), batch))


@pytest.mark.parametrize("read", READERS)
def test_batch_when_the_header_is_another_batchs_then_corrupt(read: Reader) -> None:
    batch = build_batch(records(2))
    header = replace(parse_header(memoryview(batch)), length_bytes=len(batch) + 1)

    with pytest.raises(CorruptError, match="the bytes are not one whole batch"):
        list(read(header, batch))
