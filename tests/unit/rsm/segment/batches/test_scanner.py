from __future__ import annotations

import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    LOG_OVERHEAD_BYTES,
    MAX_BATCH_BYTES,
    V2_HEADER,
)
from rsm.segment.batches.scanner import SegmentScan, SegmentScanner
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from tests.segment_builder import (
    build_batch,
    build_batches,
    build_legacy_message,
    pack_batch,
    records,
)

ONE_EPOCH = Lineage.of((0, 0))


def scan_whole(
    log: bytes | memoryview, lineage: Lineage = ONE_EPOCH, base_offset: int = 0
) -> SegmentScan:
    scanner = SegmentScanner(base_offset=base_offset, lineage=lineage)
    scanner.feed(log)
    return scanner.finish()


def batch_of_bytes(size: int, *, leader_epoch: int = 0) -> memoryview:
    """Return a batch of any size, around zeros that take no memory."""
    batch = memoryview(bytearray(size))
    fields = [0, size - LOG_OVERHEAD_BYTES, leader_epoch, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1]
    V2_HEADER.pack_into(batch, 0, *fields)
    struct.pack_into(">I", batch, 17, crc32c(batch[CRC_COVERED_FROM:]))
    return batch


def batch_of_epoch(epoch: int, base_offset: int, count: int = 10) -> bytes:
    return build_batch(records(count, base_offset=base_offset), leader_epoch=epoch)


MIXED_LOG = b"".join(
    [
        build_legacy_message(0, b"of magic 0", magic=0),
        build_legacy_message(1, b"", magic=1, timestamp_ms=1_800_000_000_000),
        *build_batches(6, base_offset=2, records_per_batch=3),
        pack_batch(b"", base_offset=30, last_offset=39),
        build_batch(records(5, base_offset=50)),
    ]
)


def test_scan_when_log_is_whole_then_result_has_all_of_it() -> None:
    scan = scan_whole(MIXED_LOG)

    assert (scan.offsets.start_offset, scan.offsets.end_offset) == (0, 55)
    assert scan.batch_count == 10
    assert scan.valid_bytes == scan.fed_bytes == len(MIXED_LOG)


@given(cuts=st.lists(st.integers(0, len(MIXED_LOG)), max_size=12))
def test_feed_when_log_comes_in_any_chunks_then_result_is_the_same(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(MIXED_LOG)]
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)

    for start, end in pairwise(edges):
        scanner.feed(memoryview(MIXED_LOG)[start:end])

    assert scanner.finish() == scan_whole(MIXED_LOG)


def test_feed_when_log_comes_byte_by_byte_then_result_is_the_same() -> None:
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)

    for position in range(len(MIXED_LOG)):
        scanner.feed(MIXED_LOG[position : position + 1])

    assert scanner.finish() == scan_whole(MIXED_LOG)


def test_feed_when_the_chunk_is_reused_then_what_was_held_back_stays() -> None:
    chunk = bytearray(MIXED_LOG[:100])
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)

    scanner.feed(memoryview(chunk))
    chunk[:] = bytes(100)
    scanner.feed(MIXED_LOG[100:])

    assert scanner.finish() == scan_whole(MIXED_LOG)


def test_feed_when_a_byte_of_any_batch_is_changed_then_corrupt_at_that_batch() -> None:
    """R21: every batch's CRC is checked while it is copied."""
    first, second = build_batches(2)
    changed = bytearray(first + second)
    changed[-1] ^= 1

    with pytest.raises(CorruptError, match="CRC") as caught:
        scan_whole(bytes(changed))

    assert caught.value.context["position"] == len(first)


@given(position=st.integers(0, 2_000), flip=st.integers(1, 255))
def test_feed_when_any_byte_of_a_log_is_changed_then_it_is_not_accepted_as_it_was(
    position: int, flip: int
) -> None:
    """R21. Changes that no batch CRC covers show in offsets, epochs or lengths."""
    log = bytearray(b"".join(build_batches(3, records_per_batch=5)))
    before = scan_whole(bytes(log))
    log[position % len(log)] ^= flip

    try:
        after = scan_whole(bytes(log))
    except CorruptError:
        return

    assert after != before


def test_feed_when_offsets_go_back_then_corrupt() -> None:
    log = batch_of_epoch(0, 10) + batch_of_epoch(0, 19)

    with pytest.raises(CorruptError, match="do not ascend"):
        scan_whole(log)


def test_feed_when_a_legacy_offset_moves_back_then_corrupt() -> None:
    log = batch_of_epoch(0, 10) + build_legacy_message(19, b"", magic=1)

    with pytest.raises(CorruptError, match="do not ascend"):
        scan_whole(log)


def test_feed_when_first_batch_is_below_the_base_offset_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="do not ascend"):
        scan_whole(batch_of_epoch(0, 10), base_offset=11)


def test_feed_when_epochs_follow_the_lineage_then_accepted() -> None:
    """R21: partition leader epochs are checked against the lineage."""
    log = batch_of_epoch(1, 0) + batch_of_epoch(3, 10) + batch_of_epoch(3, 20)

    scan = scan_whole(log, Lineage.of((1, 0), (3, 10), (4, 30)))

    assert scan.batch_count == 3


@pytest.mark.parametrize(
    ("epochs", "lineage"),
    [
        ((1, 2), Lineage.of((1, 0), (3, 10))),
        ((1, 1), Lineage.of((1, 0), (3, 10))),
        ((3, 3), Lineage.of((1, 0), (3, 10))),
        ((3, 1), Lineage.of((1, 0), (3, 10))),
        ((1, 4), Lineage.of((1, 0), (3, 10))),
        ((1, 3), Lineage.of((1, 0), (3, 15))),
        ((1, 3), Lineage.of((1, 0), (3, 5))),
        ((0, 0), Lineage()),
        ((-1, -1), Lineage.of((0, 0))),
    ],
)
def test_feed_when_epochs_are_not_the_lineages_then_corrupt(
    epochs: tuple[int, int], lineage: Lineage
) -> None:
    """R21: another leader's batches at the same offsets are never stored as this log's."""
    log = batch_of_epoch(epochs[0], 0) + batch_of_epoch(epochs[1], 10)

    with pytest.raises(CorruptError, match="epoch"):
        scan_whole(log, lineage)


def test_feed_when_the_first_batch_has_no_epoch_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="epoch"):
        scan_whole(batch_of_epoch(-1, 0, count=1))


@pytest.mark.parametrize("epochs", [(2, 2), (0, 2), (1, 2)])
def test_feed_when_lineage_was_cut_by_a_trim_then_older_epochs_below_it_are_accepted(
    epochs: tuple[int, int],
) -> None:
    """R5: after a trim the checkpoint's first entry is only an upper bound of its epoch's start."""
    log = batch_of_epoch(epochs[0], 0) + batch_of_epoch(epochs[1], 10) + batch_of_epoch(2, 20)

    assert scan_whole(log, Lineage.of((2, 15))).batch_count == 3


@pytest.mark.parametrize("epochs", [(3, 3), (1, 0), (1, 1), (2, 1)])
def test_feed_when_epochs_below_a_cut_lineage_are_impossible_then_corrupt(
    epochs: tuple[int, int],
) -> None:
    """R5: newer than the first entry, going back, or an older epoch that reaches beyond its end."""
    log = batch_of_epoch(epochs[0], 0) + batch_of_epoch(epochs[1], 10)

    with pytest.raises(CorruptError, match="epoch"):
        scan_whole(log, Lineage.of((2, 15)))


def test_finish_when_log_ends_within_a_batch_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="ends within a batch"):
        scan_whole(MIXED_LOG[:-1])


def test_scan_when_log_ends_within_a_batch_then_whole_ones_are_returned() -> None:
    first, second = build_batches(2)
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)

    scanner.feed(first + second[:-1])

    assert scanner.scan().valid_bytes == len(first)
    assert scanner.scan().fed_bytes == len(first) + len(second) - 1
    assert scanner.scan().offsets.end_offset == 10


def test_finish_when_nothing_was_fed_then_empty_result() -> None:
    scan = SegmentScanner(base_offset=7, lineage=ONE_EPOCH).finish()

    assert (scan.offsets.start_offset, scan.offsets.end_offset) == (7, 7)
    assert scan.batch_count == 0


@pytest.mark.parametrize("first_bytes", [0, 1, 16])
def test_feed_when_a_length_is_beyond_the_bound_then_corrupt_before_it_is_held_back(
    first_bytes: int,
) -> None:
    length = MAX_BATCH_BYTES - LOG_OVERHEAD_BYTES + 1
    log = bytes(8) + struct.pack(">iib", length, 0, 2)
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)
    scanner.feed(log[:first_bytes])

    with pytest.raises(CorruptError, match="out of bounds"):
        scanner.feed(log[first_bytes:])


def test_feed_when_a_whole_batch_is_beyond_the_bound_then_corrupt_too() -> None:
    with pytest.raises(CorruptError, match="out of bounds"):
        scan_whole(batch_of_bytes(MAX_BATCH_BYTES + 1))


@given(data=st.binary(max_size=300))
def test_feed_when_data_is_random_then_nothing_is_accepted(data: bytes) -> None:
    scanner = SegmentScanner(base_offset=0, lineage=ONE_EPOCH)

    with suppress(CorruptError):
        scanner.feed(data)

    assert scanner.scan().valid_bytes == 0


def test_feed_when_delta_is_negative_then_corrupt() -> None:
    batch = bytearray(pack_batch(b"", base_offset=5, last_offset=5))
    struct.pack_into(">i", batch, 23, -1)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))

    with pytest.raises(CorruptError, match="do not ascend"):
        scan_whole(bytes(batch))
