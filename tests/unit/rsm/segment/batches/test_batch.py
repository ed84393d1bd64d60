from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import (
    HEADER_BYTES,
    MAX_BATCH_BYTES,
    TimestampType,
    batch_length_bytes,
    parse_header,
    scan_batches,
    verify_crc,
)
from rsm.segment.errors import CorruptError
from tests.segment_builder import (
    build_batch,
    build_batches,
    build_legacy_message,
    pack_batch,
    record,
    records,
)

LENGTH_POSITION = 8
MAGIC_POSITION = 16


def with_field(batch: bytes, position: int, layout: str, value: int) -> bytes:
    """Return `batch` with one field replaced and its CRC untouched."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    return bytes(changed)


def test_parse_header_when_batch_is_v2_then_all_fields_are_read() -> None:
    batch = build_batch(
        [record(100, timestamp_ms=5_000), record(107, timestamp_ms=4_000)],
        leader_epoch=7,
        producer_id=11,
        producer_epoch=12,
        base_sequence=13,
        is_transactional=True,
    )

    header = parse_header(memoryview(batch))

    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 107, 108)
    assert header.length_bytes == len(batch)
    assert header.partition_leader_epoch == 7
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (5_000, 5_000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (11, 12, 13)
    assert (header.magic, header.record_count) == (2, 2)
    assert header.is_transactional
    assert not header.is_control
    assert header.timestamp_type is TimestampType.CREATE_TIME


@pytest.mark.parametrize("magic", [0, 1])
def test_parse_header_when_message_is_legacy_then_it_is_a_batch_of_its_own(magic: int) -> None:
    message = build_legacy_message(42, b"value", magic=magic, timestamp_ms=9_000)

    header = parse_header(memoryview(message))

    assert (header.base_offset, header.last_offset, header.next_offset) == (42, 42, 43)
    assert (header.magic, header.length_bytes, header.record_count) == (magic, len(message), 1)
    assert header.max_timestamp_ms == (-1 if magic == 0 else 9_000)
    assert (header.partition_leader_epoch, header.producer_id) == (-1, -1)
    assert not header.is_transactional
    assert not header.is_control


@given(attributes=st.integers(0, 127))
def test_header_when_attributes_vary_then_each_bit_has_its_meaning(attributes: int) -> None:
    header = parse_header(memoryview(pack_batch(b"", attributes=attributes)))

    assert header.compression_id == attributes % 8
    assert header.timestamp_type is TimestampType(attributes >> 3 & 1)
    assert header.is_transactional == bool(attributes & 16)
    assert header.is_control == bool(attributes & 32)


@pytest.mark.parametrize("size", [-(1 << 31), -1, 0, 48, MAX_BATCH_BYTES, (1 << 31) - 1])
def test_batch_length_when_out_of_bounds_then_corrupt_with_position(size: int) -> None:
    batch = with_field(build_batch(records(1)), LENGTH_POSITION, ">i", size)

    with pytest.raises(CorruptError, match="out of bounds") as caught:
        batch_length_bytes(memoryview(b"---" + batch), 3, base_position=1_000)

    assert caught.value.context["position"] == 1_003
    assert caught.value.context["found"] == size + 12


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_batch_length_when_magic_is_unknown_then_corrupt(magic: int) -> None:
    batch = with_field(build_batch(records(1)), MAGIC_POSITION, ">B", magic)

    with pytest.raises(CorruptError, match="the batch's magic is unknown"):
        batch_length_bytes(memoryview(batch), 0)


@pytest.mark.parametrize(
    ("position", "layout"), [(0, ">q"), (23, ">i"), (57, ">i")], ids=["offset", "delta", "count"]
)
def test_parse_header_when_a_field_is_negative_then_corrupt(position: int, layout: str) -> None:
    batch = with_field(build_batch(records(1)), position, layout, -1)

    with pytest.raises(CorruptError, match="negative"):
        parse_header(memoryview(batch))


@pytest.mark.parametrize("length", [0, 16, 17, HEADER_BYTES - 1])
def test_parse_header_when_cut_short_then_corrupt(length: int) -> None:
    with pytest.raises(CorruptError, match="truncated"):
        parse_header(memoryview(build_batch(records(1)))[:length])


@given(cut=st.integers(0, 2_000))
def test_scan_batches_when_the_tail_is_incomplete_then_whole_ones_are_yielded(cut: int) -> None:
    batches = build_batches(4, records_per_batch=2)
    log = b"".join(batches)[:cut]
    ends = [sum(map(len, batches[:n])) for n in range(1, 5)]

    scanned = list(scan_batches(memoryview(log), base_position=500))

    assert len(scanned) == sum(end <= len(log) for end in ends)
    assert [position + header.length_bytes for position, header in scanned] == [
        500 + end for end in ends[: len(scanned)]
    ]


def test_scan_batches_when_magics_are_mixed_then_each_is_yielded() -> None:
    log = (
        build_legacy_message(0, b"old", magic=0)
        + build_legacy_message(1, b"newer", magic=1)
        + build_batch(records(3, base_offset=2))
    )

    headers = [header for _, header in scan_batches(memoryview(log))]

    assert [(each.magic, each.base_offset, each.last_offset) for each in headers] == [
        (0, 0, 0),
        (1, 1, 1),
        (2, 2, 4),
    ]


@given(data=st.binary(max_size=200))
def test_scan_batches_when_data_is_random_then_batches_or_corrupt(data: bytes) -> None:
    try:
        scanned = list(scan_batches(memoryview(data)))
    except CorruptError:
        return

    assert sum(header.length_bytes for _, header in scanned) <= len(data)


@pytest.mark.parametrize(
    "batch",
    [
        build_batch(records(3)),
        build_legacy_message(5, b"value", magic=0),
        build_legacy_message(5, b"value", magic=1),
    ],
    ids=["v2", "magic 0", "magic 1"],
)
def test_verify_crc_when_any_covered_byte_changes_then_corrupt(batch: bytes) -> None:
    verify_crc(memoryview(batch))
    changed = batch[:-1] + bytes([batch[-1] ^ 1])

    with pytest.raises(CorruptError, match="CRC") as caught:
        verify_crc(memoryview(changed), position=77)

    assert caught.value.context["position"] == 77


def test_verify_crc_when_more_than_one_batch_is_given_then_corrupt() -> None:
    batch = build_batch(records(1))

    with pytest.raises(CorruptError, match="the bytes are not one whole batch"):
        verify_crc(memoryview(batch + batch))
