"""The errors of a scan, exact to the offset, byte and epoch, and the positions in them."""

from __future__ import annotations

import struct

import pytest

from rsm.segment.batches.batch import MAX_BATCH_BYTES, parse_header, scan_batches, verify_crc
from rsm.segment.batches.scanner import SegmentScanner
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from tests.segment_builder import (
    build_batch,
    build_legacy_message,
    records,
)
from tests.unit.rsm.segment.batches.test_scanner import (
    ONE_EPOCH,
    batch_of_bytes,
    batch_of_epoch,
    scan_whole,
)

FIRST = batch_of_epoch(0, 0)
GARBAGE = bytes(16) + b"\x09" + bytes(100)
"""A batch with an unknown magic."""


def changed(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize("magic", [0, 1])
def test_feed_when_a_byte_of_a_legacy_message_is_changed_then_corrupt_at_it(magic: int) -> None:
    """R21: messages of old logs carry a CRC too."""
    message = build_legacy_message(10, b"value", magic=magic)

    with pytest.raises(CorruptError, match="CRC") as caught:
        scan_whole(FIRST + changed(message, len(message) - 1))

    assert caught.value.context["position"] == len(FIRST)


def test_feed_when_what_follows_is_no_batch_then_corrupt_at_its_position_in_the_segment() -> None:
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)
    second = batch_of_epoch(0, 10)
    scanner.feed(FIRST)

    with pytest.raises(CorruptError, match="the batch's magic is unknown") as caught:
        scanner.feed(second + GARBAGE)

    assert caught.value.context["position"] == len(FIRST) + len(second)


def test_feed_when_a_legacy_offset_is_negative_then_corrupt_at_it() -> None:
    message = build_legacy_message(0, b"", magic=1)

    with pytest.raises(CorruptError, match="the offset is negative") as caught:
        scan_whole(FIRST + struct.pack(">q", -1) + message[8:])

    assert caught.value.context["position"] == len(FIRST)


def test_feed_when_a_batch_is_as_large_as_it_may_be_then_its_epoch_is_checked_too() -> None:
    with pytest.raises(CorruptError, match="epoch"):
        scan_whole(batch_of_bytes(MAX_BATCH_BYTES, leader_epoch=1))


def test_feed_when_a_batch_holds_one_record_then_accepted() -> None:
    log = build_batch(records(1)) + build_batch(records(1, base_offset=1))
    assert scan_whole(log).offsets.end_offset == 2


@pytest.mark.parametrize(("later_start", "accepted"), [(20, True), (19, False)])
def test_feed_when_a_later_batch_reaches_to_its_epochs_end_then_accepted_no_further(
    later_start: int, *, accepted: bool
) -> None:
    log = batch_of_epoch(1, 0) + batch_of_epoch(1, 10)
    lineage = Lineage.of((1, 0), (3, later_start))
    if accepted:
        assert scan_whole(log, lineage).batch_count == 2
        return

    with pytest.raises(CorruptError, match="above the end of its leader epoch"):
        scan_whole(log, lineage)


@pytest.mark.parametrize(("later_start", "accepted"), [(10, True), (9, False)])
def test_feed_when_the_first_batch_reaches_to_its_epochs_end_then_accepted_no_further(
    later_start: int, *, accepted: bool
) -> None:
    lineage = Lineage.of((1, 0), (3, later_start))
    if accepted:
        assert scan_whole(batch_of_epoch(1, 0), lineage).batch_count == 1
        return

    with pytest.raises(CorruptError, match="above the end of its leader epoch"):
        scan_whole(batch_of_epoch(1, 0), lineage)


def test_scan_batches_when_what_follows_is_no_batch_then_corrupt_at_its_position_in_the_log() -> (
    None
):
    found = scan_batches(memoryview(FIRST + GARBAGE), base_position=1_000)
    assert next(found)[0] == 1_000

    with pytest.raises(CorruptError, match="the batch's magic is unknown") as caught:
        next(found)

    assert caught.value.context["position"] == 1_000 + len(FIRST)


def test_scan_batches_when_a_field_is_negative_then_corrupt_at_its_position_in_the_log() -> None:
    bad = bytearray(FIRST)
    struct.pack_into(">i", bad, 23, -1)

    with pytest.raises(CorruptError, match="a field of the batch header is negative") as caught:
        list(scan_batches(memoryview(FIRST + bad), base_position=1_000))

    assert caught.value.context["position"] == 1_000 + len(FIRST)


def test_verify_crc_when_its_header_is_wrong_then_corrupt_at_the_position_given() -> None:
    bad = bytearray(FIRST)
    struct.pack_into(">i", bad, 23, -1)

    with pytest.raises(CorruptError, match="a field of the batch header is negative") as caught:
        verify_crc(memoryview(bad), position=77)

    assert caught.value.context["position"] == 77
    assert verify_crc(memoryview(FIRST)) == parse_header(memoryview(FIRST))


def test_verify_crc_when_no_position_is_given_then_corrupt_at_the_begin() -> None:
    with pytest.raises(CorruptError, match="CRC") as caught:
        verify_crc(memoryview(changed(FIRST, len(FIRST) - 1)))

    assert caught.value.context["position"] == 0


@pytest.mark.parametrize(("attributes", "count"), [(0, 1), (1, -1), (4, -1), (8, 1)])
def test_legacy_header_when_compressed_then_its_record_count_is_unknown(
    attributes: int, count: int
) -> None:
    message = bytearray(build_legacy_message(7, b"value", magic=1))
    message[17] = attributes

    header = parse_header(memoryview(message))

    assert header.record_count == count
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.partition_leader_epoch, header.last_offset_delta) == (-1, 0)
