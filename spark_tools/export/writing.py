"""Writes the files of several ranges in one Spark job, with one task per range.

If the directory is on the executors' host or mounted there, tasks write Parquet with Arrow, in a
third of the time. Spark writes to other file systems, and writes with codecs that Arrow lacks.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from rsm.segment.errors import CorruptError
from spark_tools.connection import ClusterConnection
from spark_tools.export.file_ranges import FileRange, WrittenFiles
from spark_tools.export.manifest import not_in_the_output
from spark_tools.export.parquet_files import ParquetFiles
from spark_tools.export.range_reader import DATE, OFFSET, TIMESTAMP, RangeReader, with_date
from spark_tools.python_worker import exempt_modules_from_collection
from spark_tools.reading.options import ReadOptions
from spark_tools.rows.schema import spark_ddl
from spark_tools.schemas.decoded_rows import POSITION_COLUMNS, count_undecodable, decoded_rows
from spark_tools.schemas.decoding import NOT_DECODING, Decoding
from spark_tools.spark.hadoop_files import HadoopFiles

COLUMNS_OF_PATHS = ("topic", "partition")
"""The columns whose values are in the names of directories, from which readers get them."""

_TIMESTAMP_OPTION = "spark.sql.parquet.outputTimestampType"
_CODEC_OPTION = "spark.sql.parquet.compression.codec"
_ARROWS_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none"}
_ARROWS_CODECS |= {"uncompressed": "none", "lz4_raw": "lz4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsToWrite:
    """Represents the parameters of a task that exports rows. Spark sends them to executors."""

    connection: ClusterConnection
    options: ReadOptions
    columns: tuple[str, ...]
    by_date: bool
    decoding: Decoding

    @classmethod
    def of(
        cls,
        connection: ClusterConnection,
        options: ReadOptions,
        *,
        by_date: bool,
        decoding: Decoding = NOT_DECODING,
    ) -> RowsToWrite:
        columns = tuple(name for name in options.columns if name not in COLUMNS_OF_PATHS)
        needed = dict.fromkeys((*columns, OFFSET, *((TIMESTAMP,) if by_date else ())))
        written = decoding.columns(columns)
        rows = (*written, *(name for name in needed if name not in written))
        if decoding.readers:
            needed |= dict.fromkeys(POSITION_COLUMNS)
        return cls(
            connection=connection,
            options=replace(options, columns=tuple(needed)),
            columns=written,
            by_date=by_date,
            decoding=replace(decoding, output=rows) if decoding.readers else decoding,
        )

    @property
    def ddl(self) -> str:
        """Return the written columns and the column `offset` as Spark DDL."""
        types = self.decoding.spark_types(self.options.columns, quoted=True)
        return spark_ddl(tuple(dict.fromkeys((*self.columns, OFFSET))), types)

    def read(self, file_range: FileRange) -> Iterator[pa.RecordBatch | WrittenFiles]:
        """Yield the rows, with the date if `by_date`; then yield the outcome without file names."""
        storage = self.connection.store.open()
        try:
            reader = RangeReader(file_range, storage, self.options)
            rows = reader.rows()
            if self.decoding.readers:
                rows = decoded_rows(rows, self.decoding, self.decoding.output)
            undecodable_count = 0
            for batch in rows:
                undecodable_count += count_undecodable(batch, self.decoding)
                yield with_date(batch) if self.by_date else batch
            yield replace(reader.written(()), undecodable_count=undecodable_count)
        finally:
            storage.close()
        exempt_modules_from_collection()


def write_files(
    spark: SparkSession,
    files: HadoopFiles,
    attempt: str,
    work: RowsToWrite,
    ranges: Sequence[FileRange],
) -> list[WrittenFiles]:
    """Write each range's files below the directory `attempt`; return the outcomes in range order.

    Raises Spark's errors, CorruptError if a task returned no outcome, and InvalidConfigError if the
    driver does not see a task's files.
    """
    local = files.local_path(attempt)
    codec = _ARROWS_CODECS.get((spark.conf.get(_CODEC_OPTION, "snappy") or "snappy").lower())
    if local is None or codec is None:
        found = _by_spark(spark, files, attempt, work, ranges)
    else:
        found = _by_arrow(spark, Path(local), codec, work, ranges)
    if len(found) != len(ranges):
        raise CorruptError("cannot finish the export: a task returned no outcome", attempt=attempt)
    require_named(found, attempt)
    return found


def require_named(written: Iterable[WrittenFiles], attempt: str) -> None:
    """Raise InvalidConfigError if a range has records but no file in the directory `attempt`."""
    if any(each.records_count and not each.names for each in written):
        raise not_in_the_output(attempt)


def _by_arrow(
    spark: SparkSession, directory: Path, codec: str, work: RowsToWrite, ranges: Sequence[FileRange]
) -> list[WrittenFiles]:
    task = partial(_write_with_arrow, directory=directory, codec=codec, work=work)
    rows = _tasks(spark, ranges).mapInArrow(partial(_each, ranges, task), "outcome binary")
    return [pickle.loads(row["outcome"]) for row in rows.collect()]  # noqa: S301 - written by this job


def _tasks(spark: SparkSession, ranges: Sequence[FileRange]) -> DataFrame:
    """Return one row per range, each in a separate partition, with the range's number."""
    return spark.range(0, len(ranges), 1, max(1, len(ranges)))


def _each(
    ranges: Sequence[FileRange],
    task: Callable[[int, FileRange], Iterator[pa.RecordBatch]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from task(number, ranges[number])


def _write_with_arrow(
    number: int, file_range: FileRange, *, directory: Path, codec: str, work: RowsToWrite
) -> Iterator[pa.RecordBatch]:
    # Spark may start a task twice, so each attempt has its own name.
    name = f"part-{number:05d}-{uuid4()}"
    written = ParquetFiles(directory, name, work.columns, codec)
    for each in work.read(file_range):
        if isinstance(each, WrittenFiles):
            written.close()
            outcome = replace(each, names=tuple(written.names))
            yield pa.RecordBatch.from_pydict({"outcome": [pickle.dumps(outcome)]})
        else:
            written.write(each)


class _Outcomes(AccumulatorParam[dict[int, bytes]]):
    """Represents outcomes by range number; Spark merges those of each completed task once."""

    def zero(self, value: dict[int, bytes]) -> dict[int, bytes]:
        return {}

    def addInPlace(  # noqa: N802 - Spark's
        self, value1: dict[int, bytes], value2: dict[int, bytes]
    ) -> dict[int, bytes]:
        value1.update(value2)
        return value1


def _by_spark(
    spark: SparkSession,
    files: HadoopFiles,
    attempt: str,
    work: RowsToWrite,
    ranges: Sequence[FileRange],
) -> list[WrittenFiles]:
    outcomes = spark.sparkContext.accumulator({}, _Outcomes())
    task = partial(_hand_to_spark, outcomes=outcomes, work=work)
    ddl = work.ddl + (f", `{DATE}` date" if work.by_date else "")
    frame = _tasks(spark, ranges).mapInArrow(partial(_each, ranges, task), ddl)
    if work.by_date:
        frame = frame.sortWithinPartitions(DATE, OFFSET)
    if OFFSET not in work.columns:
        frame = frame.drop(OFFSET)
    writer = frame.write.partitionBy(DATE) if work.by_date else frame.write
    with _timestamps_as_arrow_writes_them(spark):
        writer.parquet(files.full_path(attempt))
    names = _names_by_task(files, attempt)
    return [
        replace(pickle.loads(outcomes.value[number]), names=tuple(names.get(number, ())))  # noqa: S301 - written by this job
        for number in range(len(ranges))
        if number in outcomes.value
    ]


@contextmanager
def _timestamps_as_arrow_writes_them(spark: SparkSession) -> Iterator[None]:
    """Replace INT96, Spark's default, because it has no time zone."""
    before = spark.conf.get(_TIMESTAMP_OPTION, None)
    spark.conf.set(_TIMESTAMP_OPTION, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_TIMESTAMP_OPTION)
        else:
            spark.conf.set(_TIMESTAMP_OPTION, before)


def _hand_to_spark(
    number: int,
    file_range: FileRange,
    *,
    outcomes: Accumulator[dict[int, bytes]],
    work: RowsToWrite,
) -> Iterator[pa.RecordBatch]:
    names = [*dict.fromkeys((*work.columns, OFFSET)), *([DATE] if work.by_date else [])]
    for each in work.read(file_range):
        if isinstance(each, WrittenFiles):
            outcomes.add({number: pickle.dumps(each)})
        else:
            yield each.select(names)


def _names_by_task(files: HadoopFiles, attempt: str) -> dict[int, list[str]]:
    """Return Spark's files below a directory, by the task number in their names."""
    found: dict[int, list[str]] = {}
    for name in files.names(attempt):
        inner = (
            [f"{name}/{each}" for each in files.names(f"{attempt}/{name}")]
            if name.startswith(f"{DATE}=")
            else [name]
        )
        for path in inner:
            base = path.rpartition("/")[2]
            if base.startswith("part-"):
                found.setdefault(int(base.split("-")[1]), []).append(path)
    return found
