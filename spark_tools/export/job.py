"""The export job: what is stored and was not exported before, a range of a partition at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rsm.segment.errors import NotFoundError
from spark_tools.connection import Connection
from spark_tools.export.manifest import Manifest
from spark_tools.export.ranges import (
    ExportedRange,
    PlannedRange,
    lost,
    remaining,
    require_same_rows,
)
from spark_tools.hadoop_files import HadoopFiles
from spark_tools.reading.options import EARLIEST_OFFSET, OffsetBounds, ReadOptions
from spark_tools.reading.plan import Piece
from spark_tools.reading.planner import Planner, open_planner
from spark_tools.rows.schema import spark_ddl
from spark_tools.segment_partition import SegmentPartition, partition_rows

COLUMNS_OF_PATHS = ("topic", "partition")
"""Directories are named by them, so that who reads them has them from there."""


class Export:
    """Exports what `options` of the data source name into `output`, a directory of any store."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], output: str) -> None:
        self._spark = spark
        self._connection = Connection.of(options)
        self._options = ReadOptions.of(options)
        self._output = output
        self._manifest = Manifest(HadoopFiles(spark, output))

    def run(self) -> Iterator[ExportedRange]:
        """Export; each range as soon as it counts.

        Raises InvalidConfigError for other columns or another isolation than before; FencedError
        where another export does the same; NotFoundError, in the end, where records have expired
        that were not exported.
        """
        done = self._manifest.lines()
        require_same_rows(done, self._options)
        self._manifest.complete(done, datetime.now(UTC))
        expired: list[NotFoundError] = []
        with open_planner(self._connection, self._options) as planner:
            for planned in remaining(planner.batch(self._options), done):
                error = self._expired(planner, planned, done)
                if error is None:
                    yield self._export(planner, planned)
                else:
                    expired.append(error)
        if expired:
            raise expired[0]

    def _expired(
        self, planner: Planner, planned: PlannedRange, done: Sequence[ExportedRange]
    ) -> NotFoundError | None:
        """Why a partition is not exported further until its user says from where."""
        tip = planned.topic_id_partition
        if self._options.starting.of(tip.topic, tip.partition) != EARLIEST_OFFSET:
            return None
        gaps = (gap.offsets for gap in planner.partition(tip).state.gaps)
        offsets = lost(planned, done, gaps)
        if offsets is None:
            return None
        return NotFoundError(
            "records expired before they were exported; startingOffsets goes on behind them",
            partition=f"{tip.topic}:{tip.partition}",
            offsets=offsets,
            startingOffsets=f'{{"{tip.topic}":{{"{tip.partition}":{offsets.end_offset}}}}}',
        )

    def _export(self, planner: Planner, planned: PlannedRange) -> ExportedRange:
        attempt = self._manifest.new_attempt(datetime.now(UTC))
        path = f"{self._output}/{self._manifest.directory(attempt)}"
        rows = self._rows(planner.pieces(_within(self._options, planned)))
        rows.drop(*COLUMNS_OF_PATHS).write.parquet(path)
        records_count = self._spark.read.parquet(path).count()
        exported = planned.exported(self._options, records_count, attempt)
        self._manifest.add(exported)
        return exported

    def _rows(self, pieces: Sequence[Piece]) -> DataFrame:
        """What the data source would read of these pieces, each by a task of its own."""
        now = datetime.now(UTC)
        packed = [(pickle.dumps(SegmentPartition(piece, now)),) for piece in pieces]
        each = self._spark.sparkContext.parallelize(packed, max(1, len(packed)))
        frame = self._spark.createDataFrame(each, "piece binary")
        read = partial(_read, connection=self._connection, options=self._options)
        return frame.mapInArrow(read, spark_ddl(self._options.columns))


def _read(
    batches: Iterator[pa.RecordBatch], *, connection: Connection, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column("piece").to_pylist():
            partition = pickle.loads(packed)  # noqa: S301 - of our own driver
            yield from partition_rows(partition, connection, options)


def _within(options: ReadOptions, planned: PlannedRange) -> ReadOptions:
    """The options of one range: its leases are taken when it is read."""
    tip, offsets = planned.topic_id_partition, planned.offsets
    named = (tip.topic, tip.partition)
    return replace(
        options,
        partitions={tip.topic: frozenset({tip.partition})},
        starting=OffsetBounds(default=EARLIEST_OFFSET, named={named: offsets.start_offset}),
        ending=OffsetBounds(default=EARLIEST_OFFSET, named={named: offsets.end_offset}),
    )
