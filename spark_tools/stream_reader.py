"""The data source as a stream: what is stored now, and what comes to be stored.

On the driver Spark keeps one reader, in a Python process of its own; the metadata stays open in it
until the query stops. Executors read pieces as those of a batch do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from spark_tools.connection import Connection
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.planner import Planner, open_planner
from spark_tools.reading.stream_offsets import (
    StreamOffsets,
    between,
    initial_offsets,
    latest_offsets,
)
from spark_tools.segment_partition import SegmentPartition, partition_rows

_LOOK_INTERVAL_S = 30.0  # for partitions that were added


class SegmentStreamReader(DataSourceStreamReader):
    """One streaming query. Nothing is opened before Spark asks for offsets."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = ReadOptions.of(options)
        self._connection = Connection.of(options)
        self._planner: Planner | None = None
        self._open = ExitStack()
        self._reached: StreamOffsets = {}
        self._looked_s = 0.0

    def initialOffset(self) -> StreamOffsets:  # noqa: N802 - Spark's name
        self._reached = initial_offsets(self._opened().stored(), self._options)
        return self._reached

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: StreamOffsets | None = None, limit: object = None
    ) -> StreamOffsets:
        """Spark tells the start from 4.2 on; before, it is what was read or begun last."""
        planner = self._opened()
        if time.monotonic() - self._looked_s > _LOOK_INTERVAL_S:
            planner.look_for_new(self._options)
            self._looked_s = time.monotonic()
        return latest_offsets(planner.stored(), start or self._reached)

    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> Sequence[InputPartition]:
        """Raises NotFoundError where what is to be read has expired."""
        self._reached = end
        pieces = self._opened().pieces(between(self._options, start, end))
        return [SegmentPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return partition_rows(partition, self._connection, self._options)

    def stop(self) -> None:
        self._planner = None
        self._open.close()

    def _opened(self) -> Planner:
        if self._planner is None:
            self._planner = self._open.enter_context(open_planner(self._connection, self._options))
            self._looked_s = time.monotonic()
        return self._planner
