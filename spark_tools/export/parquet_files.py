"""Writes rows as Parquet files into a directory that this host sees, one file or one per date.

Memory: GATHERED_BYTES of rows, as much again if they have several dates, and what Arrow needs to
encode a row group of one file's share.
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
"""Of a task; one that is open takes a file descriptor and the list of its row groups."""
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, Spark and others name the directory of rows without a value."""


class ParquetFiles:
    """The files of one range, in order of its rows; one thread's.

    Rows are gathered up to `gathered_bytes`. With the column `date` they then go into a directory
    per date, a row group for each date. Files stay open, up to a limit: then the date that has
    waited longest gets another file. So a range has at most a file for each date of each gathering.
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
        """Take rows. OSError."""
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= self._limit_bytes:
            self._write_gathered()

    def close(self) -> None:
        """Write what was taken. OSError."""
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
            self._open[directory] = file  # the last of those that are open
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
"""Columns whose values repeat: a dictionary of the others is given up after its first page."""


def _by_date(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each date with its directory; all of them, and none, without dates."""
    if DATE not in rows.schema.names:
        yield "", rows
        return
    counts = pc.value_counts(rows.column(DATE)).to_pylist()
    if len(counts) > 1:
        rows = rows.take(pc.sort_indices(rows.column(DATE)))  # stable, and null comes last
        counts.sort(key=lambda each: (each["values"] is None, each["values"]))
    position = 0
    for each in counts:
        yield _directory(each["values"]), rows.slice(position, each["counts"])
        position += each["counts"]


def _directory(date: object) -> str:
    return f"{DATE}={_NO_DATE if date is None else date}/"
