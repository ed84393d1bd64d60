"""Reads the data source as a stream: the stored segments, then each segment that is stored later.

Spark runs one reader per query in a Python process on the driver. The reader keeps the metadata
snapshot open until the query stops. Executors read pieces as in a batch query.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rsm.segment.errors import InvalidConfigError
from spark_tools.connection import ClusterConnection
from spark_tools.leases.handover import stream_leases
from spark_tools.leases.renewal import RenewedLeases
from spark_tools.notebook import in_one_sentence
from spark_tools.reading.opening import open_planner
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.planner import Planner
from spark_tools.reading.stream_offsets import (
    NO_LIMITS,
    StreamOffsets,
    between,
    initial_offsets,
    latest_offsets,
    stored_offsets,
)
from spark_tools.schemas.decoding import Decoding
from spark_tools.spark.segment_partition import SegmentPartition, partition_rows
from spark_tools.stored_partition import StoredPartition

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Before 4.2, Spark does not pass the start offset.
    SupportsTriggerAvailableNow = None  # type: ignore[assignment,misc]  # a class or nothing

_LOOK_INTERVAL_S = 30.0  # The reader looks for new partitions at this interval.


class _Open(NamedTuple):
    planner: Planner
    leases: RenewedLeases


class SegmentStreamReader(DataSourceStreamReader):
    """The reader of one streaming query. Opens nothing at construction. Not thread-safe."""

    def __init__(
        self,
        connection: ClusterConnection,
        options: ReadOptions,
        given: Mapping[str, str],
        decoding: Decoding,
        keeper_address: str | None,
    ) -> None:
        """Take the user's options as `given`.

        The first use raises InvalidConfigError for options that a stream does not support.
        """
        self._given = dict(given)
        self._connection = connection
        self._options = options
        self._decoding = decoding
        self._keeper_address = keeper_address
        self._open: _Open | None = None
        self._resources = ExitStack()
        self._reached: StreamOffsets = {}
        self._target: StreamOffsets | None = None
        self._stored_offsets: StreamOffsets | None = None
        self._looked_s = 0.0

    def initialOffset(self) -> StreamOffsets:  # noqa: N802 - Spark's name
        self._reached = initial_offsets(self._opened().planner.read_stored(), self._options)
        return self._reached

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: StreamOffsets | None = None, limit: object = None
    ) -> StreamOffsets:
        """Return the next batch's end.

        Spark before 4.2 does not pass `start`; the batch then starts at the last batch's end.
        """
        is_limited = limit is not None and not isinstance(limit, ReadAllAvailable)
        limits = self._options.limits if is_limited else NO_LIMITS
        started = self._reached if start is None else start
        stored = self._stored()
        self._stored_offsets = stored_offsets(stored)
        latest = latest_offsets(stored, started, limits, self._target)
        if latest == started:  # All leased segments have been read, and no newer ones exist.
            self._opened().leases.release()
        return latest

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return one of the limits, because Spark takes only one; this reader applies both."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        return ReadAllAvailable() if limits.max_bytes is None else ReadMaxBytes(limits.max_bytes)

    def reportLatestOffset(self) -> StreamOffsets | None:  # noqa: N802 - Spark's name
        """Return the stored end offsets at the last `latestOffset`, for the query's progress.

        Sends no request, because an error here would end the query.
        """
        return self._stored_offsets

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Make the query end at the offsets that are stored now; limits still apply."""
        self._target = stored_offsets(self._stored())

    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> Sequence[InputPartition]:
        """Return the batch's partitions. Raises the errors of `Planner.tasks`."""
        self._reached = end
        planner, leases = self._opened()
        with leases.planning():
            tasks = planner.tasks(between(self._options, start, end))
        planned_at = datetime.now(UTC)
        return [SegmentPartition(task, planned_at) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return partition_rows(partition, self._connection, self._options, self._decoding)

    def stop(self) -> None:
        """Close the metadata and release the leases. Spark usually kills the process instead."""
        self._open = None
        self._resources.close()

    def _stored(self) -> list[StoredPartition]:
        planner = self._opened().planner
        if time.monotonic() - self._looked_s > _LOOK_INTERVAL_S:
            planner.look_for_new(self._options)
            self._looked_s = time.monotonic()
        return planner.read_stored()

    def _opened(self) -> _Open:
        if self._open is None:
            with in_one_sentence():
                _require_possible(self._given, self._options)
            # Leases need not keep earlier ranges: Spark has read them.
            leases = self._resources.enter_context(stream_leases(self._keeper_address))
            opened = open_planner(self._connection, self._options, leases, keeps_leases=False)
            planner = self._resources.enter_context(opened)
            self._open = _Open(planner, leases)
            self._looked_s = time.monotonic()
        return self._open


if SupportsTriggerAvailableNow is not None:
    SupportsTriggerAvailableNow.register(SegmentStreamReader)


def _require_possible(given: Mapping[str, str], options: ReadOptions) -> None:
    if "endingoffsets" in {name.lower() for name in given}:
        raise InvalidConfigError(
            "cannot use endingOffsets: a stream has no end",
            option="endingOffsets",
            advice="Omit it, or read a batch",
        )
    if options.limits.is_limited and SupportsTriggerAvailableNow is None:
        raise InvalidConfigError(
            "cannot limit micro-batches: Spark 4.2 or newer is required",
            option="maxOffsetsPerTrigger, maxBytesPerTrigger",
            found=pyspark.__version__,
            advice="Update Spark, or omit the limits",
        )
