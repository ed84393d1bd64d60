"""Reads a piece of a stored segment as rows.

Memory: that of rows.row_batches, and of a scan with fetches of 8 MiB (rsm.read.segment_scan).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from rsm.read.segment_indexes import read_aborted
from rsm.read.segment_scan import RemoteScanner, ScanSettings
from rsm.read.unreadable_segment import unreadable_segment
from rsm.segment.batches.aborted import AbortedTransactions
from rsm.segment.errors import TieredStorageError
from rsm.segment.metadata import short_keys
from rsm.spi import RemoteStorageManager
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Hole, SegmentPiece
from spark_tools.reading.unreadable import left_out, may_be_left_out
from spark_tools.rows.record_arrays import RowBounds
from spark_tools.rows.row_batches import PartitionRows

_SETTINGS = ScanSettings(fetch_bytes=8 << 20)


def read_piece(
    piece: SegmentPiece | Hole, storage: RemoteStorageManager, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece, in order of offset.

    The mode decides what happens at an unreadable offset: this function raises an error with
    segment, objects and offset, yields a row with the reason, or only logs a warning. All rows
    before the unreadable offset are correct.
    """
    if isinstance(piece, Hole):
        tip = piece.topic_id_partition
        rows = _rows(tip.topic, tip.partition, piece, options, AbortedTransactions())
        start_offset = piece.offsets.start_offset
        yield from left_out(rows, options.mode, from_offset=start_offset, reason=piece.error())
        return
    reader = SegmentReader(piece, storage, options)
    try:
        yield from reader.rows()
    except TieredStorageError as error:
        if not may_be_left_out(error, options.mode):
            raise reader.located(error) from error
        tip = piece.stored.metadata.topic_id_partition
        rows = _rows(tip.topic, tip.partition, piece, options, AbortedTransactions())
        reason = reader.located(error)
        yield from left_out(rows, options.mode, from_offset=reader.next_offset, reason=reason)


class SegmentReader:
    """Reads one piece once. Not thread-safe."""

    def __init__(
        self, piece: SegmentPiece, storage: RemoteStorageManager, options: ReadOptions
    ) -> None:
        self._piece = piece
        self._storage = storage
        self._options = options
        self.next_offset = piece.offsets.start_offset

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises NotFoundError, CorruptError, RetriableError."""
        piece, tip = self._piece, self._piece.topic_id_partition
        aborted = read_aborted(self._storage, piece.stored.metadata, self._options.isolation)
        rows = _rows(tip.topic, tip.partition, piece, self._options, aborted)
        start_offset, end_offset = piece.offsets.start_offset, piece.offsets.end_offset
        with ThreadPoolExecutor(1, "segment-fetch") as pool:
            scanner = RemoteScanner(self._storage, pool, _SETTINGS)
            for run in scanner.scan([(piece.stored, start_offset)], start_offset, end_offset):
                yield from rows.of_run(run)
                self.next_offset = run.offsets.end_offset

    def located(self, error: TieredStorageError) -> TieredStorageError:
        """Return the error with the segment, its objects and the offset."""
        metadata = self._piece.stored.metadata
        return unreadable_segment(
            error,
            metadata,
            objects=",".join(short_keys(metadata.object_keys)),
            offset=self.next_offset,
        )


def _rows(
    topic: str,
    partition: int,
    piece: SegmentPiece | Hole,
    options: ReadOptions,
    aborted: AbortedTransactions,
) -> PartitionRows:
    return PartitionRows(
        topic=topic,
        partition=partition,
        columns=options.columns,
        bounds=RowBounds(offsets=piece.offsets, from_ms=options.from_ms, until_ms=options.until_ms),
        aborted=aborted,
    )
