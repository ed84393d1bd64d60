"""Reads the rows of a file's range on an executor, up to the first unreadable offset."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    TieredStorageError,
)
from rsm.segment.ranges import OffsetRange
from rsm.spi import RemoteStorageManager
from spark_tools.export.file_ranges import FileRange, WrittenFiles
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Hole, SegmentPiece
from spark_tools.reading.segment_reader import read_piece

DATE = "date"
OFFSET = "offset"
TIMESTAMP = "timestamp"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first and last day of the years 1 to 9999, in days since 1970.

Readers of date directories accept no other years.
"""


class RangeReader:
    """Represents one pass over a range. Not thread-safe.

    `options` must select the column `offset` and the mode FAILFAST.
    """

    def __init__(
        self, file_range: FileRange, storage: RemoteStorageManager, options: ReadOptions
    ) -> None:
        self._file_range = file_range
        self._storage = storage
        self._options = options
        self._next_offset = file_range.offsets.start_offset
        self._records_count = 0
        self._unreadable: OffsetRange | None = None
        self._error: TieredStorageError | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order of offset, up to the first unreadable one.

        Raises InvalidConfigError.
        """
        for piece in self._file_range.pieces:
            self._next_offset = max(self._next_offset, piece.offsets.start_offset)
            try:
                for batch in self._piece(piece):
                    self._records_count += batch.num_rows
                    self._next_offset = batch.column(OFFSET)[-1].as_py() + 1
                    yield batch
            except InvalidConfigError:
                raise
            except TieredStorageError as error:
                read_to = error.context.get(OFFSET)
                reached = read_to if isinstance(read_to, int) else self._next_offset
                start_offset = max(self._next_offset, reached)
                end_offset = piece.offsets.end_offset
                if start_offset < end_offset:
                    self._unreadable = OffsetRange(start_offset=start_offset, end_offset=end_offset)
                    self._error = error
                    return
            self._next_offset = piece.offsets.end_offset

    def written(self, names: tuple[str, ...]) -> WrittenFiles:
        """Return the outcome; the caller has written all rows to the files `names`."""
        whole = self._file_range.offsets.end_offset
        return WrittenFiles(
            file_range=self._file_range,
            end_offset=whole if self._unreadable is None else self._unreadable.start_offset,
            records_count=self._records_count,
            names=names if self._records_count else (),
            unreadable=self._unreadable,
            reason="" if self._error is None else str(self._error),
            is_lost=isinstance(self._error, NotFoundError | CorruptError),
        )

    def _piece(self, piece: SegmentPiece | Hole) -> Iterator[pa.RecordBatch]:
        if isinstance(piece, Hole):
            raise piece.error()
        return read_piece(piece, self._storage, self._options)


def with_date(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Append the UTC date of each record's timestamp; null outside the years 1 to 9999."""
    days = batch.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    numbers = days.cast(pa.int32())
    is_date = pc.and_(pc.greater_equal(numbers, _FIRST_DAY), pc.less_equal(numbers, _LAST_DAY))
    dates = pc.if_else(is_date, days, pa.scalar(None, pa.date32()))
    return batch.append_column(DATE, dates)
