"""Reads a piece of a stored segment as rows: index lookup, prefetch, checked batches.

Memory: two fetches of FETCH_BYTES, and the memory of rows.row_batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from rsm.segment.batches.aborted import AbortedTransactions, Isolation
from rsm.segment.batches.segment_cursor import SegmentCursor
from rsm.segment.errors import CorruptError, TieredStorageError
from rsm.segment.indexes import OFFSET_ENTRY, OffsetIndex, OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType, RemoteStorageManager
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Hole, SegmentPiece
from spark_tools.reading.unreadable import left_out, may_be_left_out
from spark_tools.rows.record_arrays import RowBounds
from spark_tools.rows.row_batches import PartitionRows

FETCH_BYTES = 8 << 20


def read_piece(
    piece: SegmentPiece | Hole, storage: RemoteStorageManager, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece, in order of offset.

    For unreadable offsets, raise an error with segment, objects and offset, or omit them, by the
    mode. All rows before the error are correct.
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
    """One pass over one piece. Not thread-safe."""

    def __init__(
        self, piece: SegmentPiece, storage: RemoteStorageManager, options: ReadOptions
    ) -> None:
        self._piece = piece
        self._storage = storage
        self._options = options
        self.next_offset = piece.offsets.start_offset

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises NotFoundError, CorruptError, RetriableError."""
        piece, metadata = self._piece, self._piece.stored.metadata
        tip = metadata.topic_id_partition
        rows = _rows(tip.topic, tip.partition, piece, self._options, self._aborted())
        entry = _first_entry(self._storage, metadata, piece.offsets.start_offset)
        cursor = SegmentCursor(piece.stored, from_offset=piece.offsets.start_offset, entry=entry)
        for fetched in _fetched(self._storage, metadata, cursor):
            for run in cursor.feed(fetched):
                yield from rows.of_run(run)
                self.next_offset = run.offsets.end_offset
            if cursor.done or cursor.next_offset >= piece.offsets.end_offset:
                return

    def located(self, error: TieredStorageError) -> TieredStorageError:
        """Return the error with the segment, its objects and the offset."""
        metadata = self._piece.stored.metadata
        return type(error)(
            "a stored segment cannot be read",
            segment_id=metadata.segment_id,
            objects=",".join(stored.key for stored in metadata.objects),
            offset=self.next_offset,
            reason=error,
        )

    def _aborted(self) -> AbortedTransactions:
        if self._options.isolation is Isolation.READ_UNCOMMITTED:
            return AbortedTransactions()
        metadata = self._piece.stored.metadata
        return AbortedTransactions(self._storage.fetch_aborted_transactions(metadata))


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


def _first_entry(
    storage: RemoteStorageManager, metadata: RemoteLogSegmentMetadata, from_offset: int
) -> OffsetIndexEntry:
    """Return where to start in the log. Raises CorruptError for a position outside the log."""
    base_offset = metadata.offsets.start_offset
    if from_offset == base_offset:
        return OffsetIndexEntry(offset=base_offset, position=0)
    data = storage.fetch_index(metadata, IndexType.OFFSET)
    if len(data) % OFFSET_ENTRY.size:
        raise CorruptError("index ends within an entry")
    entry = OffsetIndex(base_offset=base_offset, data=data).lookup(from_offset)
    if not (0 <= entry.position < metadata.segment_size_bytes and entry.offset <= from_offset):
        raise CorruptError("index entry out of place", entry=entry)
    return entry


def _fetched(
    storage: RemoteStorageManager, metadata: RemoteLogSegmentMetadata, cursor: SegmentCursor
) -> Iterator[bytes]:
    """Yield the log's bytes from the cursor on, prefetching one fetch in a thread."""
    size = metadata.segment_size_bytes
    starts = iter(range(cursor.position, size, FETCH_BYTES))

    def fetch(position: int) -> bytes:
        end_position = min(position + FETCH_BYTES, size)
        return storage.fetch_log_segment(
            metadata, ByteRange(start_position=position, end_position=end_position)
        )

    with ThreadPoolExecutor(1, "segment-fetch") as pool:
        ahead: Future[bytes] | None = None
        for position in starts:
            following = pool.submit(fetch, position)
            if ahead is not None:
                yield ahead.result()
            ahead = following
        if ahead is not None:
            yield ahead.result()
