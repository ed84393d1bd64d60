"""Writes rows as Parquet into a mounted directory: one file, or one or more per date.

Memory: GATHERED_BYTES of rows, twice that if the rows have several dates, and Arrow's buffers for
one row group.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from spark_tools.export.range_reader import DATE

GATHERED_BYTES = 64 << 20
_MAX_OPEN_FILES = 100
"""The limit per task. An open file uses a file descriptor, and memory for its row groups."""
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""The date that Hive and Spark write in the directory name of rows with a null date."""


class ParquetFiles:
    """Writes the files of one range, in the order of its rows. Not thread-safe.

    Buffers about `gathered_bytes` of rows. With the column `date`, each flush writes one row group
    per date into the date's directory. At the limit of open files, closes the least recently used
    file; later rows of its date go to another file.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        columns: tuple[str, ...],
        codec: str,
        gathered_bytes: int = GATHERED_BYTES,
    ) -> None:
        self._directory = directory
        self._name = name
        self._columns = columns
        self._codec = codec
        self._limit_bytes = gathered_bytes
        self._open: dict[str, _File] = {}
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self.names: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Buffer rows, and write them when the buffer is full. Raises OSError."""
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= self._limit_bytes:
            self._write_gathered()

    def close(self) -> None:
        """Write the buffered rows and close the files. Raises OSError."""
        self._write_gathered()
        while self._open:
            self._open.pop(next(iter(self._open))).close()

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        rows = pa.Table.from_batches(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        for directory, part in _by_date(rows):
            file = self._open.pop(directory, None) or self._begin(directory)
            self._open[directory] = file  # The file is now the most recently used one.
            file.write_row_group(part.select(self._columns))

    def _begin(self, directory: str) -> _File:
        if len(self._open) == _MAX_OPEN_FILES:
            self._open.pop(next(iter(self._open))).close()
        name = f"{directory}{self._name}.c{len(self.names):03d}.{self._codec}.parquet"
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.names.append(name)
        return _File(path, self._codec)


class _File:
    def __init__(self, path: Path, codec: str) -> None:
        self._path = path
        self._codec = codec
        self._writer: parquet.ParquetWriter | None = None

    def write_row_group(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._path, rows.schema, compression=self._codec, use_dictionary=_REPEATED
            )
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


_REPEATED = ["key", "timestampType", "leader_epoch", "headers.list.element.key"]
"""The columns with repeated values. Arrow drops other dictionaries after the first page."""


def _by_date(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each date's directory and rows; an empty name and all rows if there is no date."""
    if DATE not in rows.schema.names:
        yield "", rows
        return
    counts = pc.value_counts(rows.column(DATE)).to_pylist()
    if len(counts) > 1:
        # The sort is stable, and null sorts last.
        rows = rows.take(pc.sort_indices(rows.column(DATE)))
        counts.sort(key=lambda each: (each["values"] is None, each["values"]))
    position = 0
    for each in counts:
        yield _directory(each["values"]), rows.slice(position, each["counts"])
        position += each["counts"]


def _directory(date: object) -> str:
    return f"{DATE}={_NO_DATE if date is None else date}/"
