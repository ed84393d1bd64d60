"""Writes rows as Parquet files into a directory that this host sees, one file or one per date.

Memory: GATHERED_BYTES of rows, and what Arrow needs to encode a row group of one file's share.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from spark_tools.export.range_reader import DATE

GATHERED_BYTES = 64 << 20
_MAX_OPEN_FILES = 8
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, Spark and others name the directory of rows without a value."""


class ParquetFiles:
    """The files of one range, in order of its rows; one thread's.

    With the column `date` rows go into a directory per date, as many files at once as that needs,
    up to a limit: then the date that has waited longest gets another file.
    """

    def __init__(self, directory: Path, name: str, columns: tuple[str, ...], codec: str) -> None:
        self._directory = directory
        self._name = name
        self._columns = columns
        self._codec = codec
        self._open: dict[str, _File] = {}
        self._gathered_bytes = 0
        self.names: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows. OSError."""
        for directory, rows in _by_date(batch):
            file = self._open.pop(directory, None) or self._begin(directory)
            self._open[directory] = file  # the last of those that are open
            file.gathered.append(rows.select(self._columns))
            self._gathered_bytes += rows.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            for file in self._open.values():
                file.write_row_group()
            self._gathered_bytes = 0

    def close(self) -> None:
        """Write what was taken. OSError."""
        while self._open:
            self._open.pop(next(iter(self._open))).close()

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
        self.gathered: list[pa.RecordBatch] = []

    def write_row_group(self) -> None:
        if not self.gathered:
            return
        table = pa.Table.from_batches(self.gathered)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._path, table.schema, compression=self._codec, use_dictionary=_REPEATED
            )
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.gathered = []

    def close(self) -> None:
        self.write_row_group()
        if self._writer is not None:
            self._writer.close()


_REPEATED = ["key", "timestampType", "leader_epoch", "headers.list.element.key"]
"""Columns whose values repeat: a dictionary of the others is given up after its first page."""


def _by_date(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """The rows of each date with its directory; all of them, and none, without dates."""
    if DATE not in batch.schema.names:
        return [("", batch)]
    dates = batch.column(DATE)
    distinct = pc.unique(dates).to_pylist()
    if len(distinct) == 1:
        return [(_directory(distinct[0]), batch)]
    parts = []
    for date in distinct:
        is_of_it = pc.is_null(dates) if date is None else pc.equal(dates, date)
        parts.append((_directory(date), batch.filter(is_of_it)))  # null is not of any
    return parts


def _directory(date: object) -> str:
    return f"{DATE}={_NO_DATE if date is None else date}/"
