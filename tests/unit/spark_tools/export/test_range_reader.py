"""Where the reading of a range stops, and that no row of a file lies beyond."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import cast

import crc32c
import pytest

from rsm.segment.coverage import StoredRange
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.spi import RemoteStorageManager
from spark_tools.export.file_ranges import FileRange, WrittenFiles
from spark_tools.export.range_reader import RangeReader
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Hole, SegmentPiece
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata
from tests.segment_builder import build_batches

OPTIONS = ReadOptions.of({"subscribe": ORDERS.topic, "columns": "offset,value"})
_CRC_POSITION, _CRC_FROM = 17, 21


class Logs:
    """The bytes of segments by their base offset, or the error that a read raises."""

    def __init__(self, logs: dict[int, bytes | TieredStorageError]) -> None:
        self._logs = logs

    def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, within: ByteRange) -> bytes:
        found = self._logs[metadata.offsets.start_offset]
        if isinstance(found, TieredStorageError):
            raise found
        return found[within.start_position : within.end_position]


def batches(base_offset: int, count: int) -> list[bytes]:
    return list(build_batches(count, base_offset=base_offset))


def undecodable(batch: bytes) -> bytes:
    """Return a batch with a right checksum, whose last record ends too early."""
    data = bytearray(batch)
    data[-1] = 0xFF  # a varint that continues
    struct.pack_into(">I", data, _CRC_POSITION, crc32c.crc32c(bytes(data[_CRC_FROM:])))
    return bytes(data)


def piece(start: int, end: int, size_bytes: int) -> SegmentPiece:
    metadata = segment_metadata(1, start, end, partition=ORDERS, state=FINISHED)
    stored = StoredRange(
        metadata=replace(metadata, segment_size_bytes=size_bytes), offsets=metadata.offsets
    )
    return SegmentPiece(stored=stored, offsets=metadata.offsets)


def read(
    logs: dict[int, bytes | TieredStorageError], *pieces: SegmentPiece | Hole
) -> tuple[list[int], WrittenFiles]:
    """Return the offsets of the rows, and the outcome."""
    offsets = OffsetRange(start_offset=0, end_offset=pieces[-1].offsets.end_offset)
    whole = FileRange(topic_id_partition=ORDERS, offsets=offsets, pieces=pieces)
    reader = RangeReader(whole, cast("RemoteStorageManager", Logs(logs)), OPTIONS)
    found = [offset for batch in reader.rows() for offset in batch.column("offset").to_pylist()]
    return found, reader.written(("part-0",))


def test_rows_when_a_batch_cannot_be_decoded_then_the_range_ends_after_the_last_row() -> None:
    """Otherwise the written rows would be exported again once the segment is restored."""
    first, second, third = batches(0, 3)
    log = first + undecodable(second) + third

    offsets, outcome = read({0: log}, piece(0, 30, len(log)))

    assert offsets == list(range(10))
    assert (outcome.end_offset, outcome.records_count) == (10, 10)
    assert str(outcome.unreadable) == "[10, 30)"
    assert (outcome.is_lost, outcome.names) == (True, ("part-0",))
    assert "a stored segment can" in outcome.reason


@pytest.mark.parametrize(
    ("error", "is_lost"), [(NotFoundError("away"), True), (RetriableError("busy"), False)]
)
def test_rows_when_a_later_segment_cannot_be_read_then_the_earlier_ones_are_whole(
    error: TieredStorageError, *, is_lost: bool
) -> None:
    log = b"".join(batches(0, 2))
    size = len(log)

    offsets, outcome = read(
        {0: log, 20: error, 40: b""}, piece(0, 20, size), piece(20, 40, size), piece(40, 60, size)
    )

    assert offsets == list(range(20))
    assert (outcome.end_offset, str(outcome.unreadable)) == (20, "[20, 40)")
    assert outcome.is_lost is is_lost


def test_rows_when_all_can_be_read_then_the_whole_range() -> None:
    log = b"".join(batches(0, 2))

    offsets, outcome = read({0: log}, piece(0, 20, len(log)))

    assert offsets == list(range(20))
    assert (outcome.end_offset, outcome.unreadable, outcome.reason) == (20, None, "")


def test_rows_when_nothing_is_stored_of_the_beginning_then_no_file() -> None:
    hole = Hole(topic_id_partition=ORDERS, offsets=OffsetRange(start_offset=0, end_offset=5))

    offsets, outcome = read({}, hole)

    assert (offsets, outcome.names, outcome.end_offset) == ([], (), 0)
    assert outcome.is_lost
