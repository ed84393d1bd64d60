"""Provides the Spark data source `rlm`, which reads stored segments from the store as rows.

    register(spark)
    spark.read.format("rlm").option("config", "rlm.properties").option("subscribe", "orders").load()

The driver plans from the metadata topic: a batch query once per DataFrame, and a stream once per
micro-batch. Executors receive parts of segments and read the store. They read a broker only if an
option requests records that are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from rsm.segment.errors import InvalidConfigError
from spark_tools.connection import ClusterConnection
from spark_tools.leases.handover import batch_leases
from spark_tools.notebook import in_one_sentence, show_log
from spark_tools.reading.opening import open_planner, plan_tasks, require_readable
from spark_tools.reading.options import Mode, ReadOptions
from spark_tools.reading.summary import PartitionSummary
from spark_tools.rows.schema import UNREADABLE, spark_types
from spark_tools.schemas.decoding import Decoding, decoded_ddl, resolve
from spark_tools.spark.application_leases import LEASE_IDLE_S, application_keeper
from spark_tools.spark.segment_partition import SegmentPartition, partition_rows
from spark_tools.spark.stream_reader import SegmentStreamReader

_EXPLAINED = "topic string, partition int, start_offset bigint, end_offset bigint, " + ", ".join(
    f"{each.name} bigint"
    for each in fields(PartitionSummary)
    if each.name not in ("topic_id_partition", "offsets")
)


class SegmentRowsReader(DataSourceReader):
    """Represents a batch query over the segments that are stored when Spark plans it.

    Options select the records; the reader accepts no pushed filters. Spark plans a relation once
    for all its uses, so the filter of the last planned use would apply to all of them.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        options: ReadOptions,
        decoding: Decoding,
        keeper_address: str | None,
    ) -> None:
        self._connection = connection
        self._options = options
        self._decoding = decoding
        self._keeper_address = keeper_address

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the query. Raises InvalidConfigError, NotFoundError or RetriableError."""
        show_log()
        planned_at = datetime.now(UTC)
        with in_one_sentence(), batch_leases(self._keeper_address) as leases:
            tasks = plan_tasks(self._connection, self._options, leases)
        return [SegmentPartition(task, planned_at) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return partition_rows(partition, self._connection, self._options, self._decoding)


class RlmDataSource(DataSource):
    """Represents the data source `rlm`; docs/spark-jobs.md lists its options.

    `keeper_address` is the address of the keeper that renews the queries' leases. `parallelism`
    sets the field of ReadOptions.
    """

    keeper_address: str | None = None
    parallelism: int = 0
    _decoding: Decoding | None = None  # Spark pickles this object at `load()` and reuses it

    @classmethod
    def name(cls) -> str:
        return "rlm"

    def schema(self) -> str:
        """Return the columns. Spark calls this at `load()`, so the user sees invalid options there.

        Raises InvalidConfigError, RetriableError.
        """
        with in_one_sentence():
            connection, options = self._parsed()
            require_readable(connection, options)
            self._decoding = resolve(options.decode, options.topics)
            return decoded_ddl(options.columns, self._decoding)

    def reader(self, schema: StructType) -> DataSourceReader:
        with in_one_sentence():
            connection, options = self._parsed()
            chosen, decoding = self._with_schema(options, schema)
            return SegmentRowsReader(connection, chosen, decoding, self.keeper_address)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        with in_one_sentence():
            connection, options = self._parsed()
            chosen, decoding = self._with_schema(options, schema)
            return SegmentStreamReader(
                connection, chosen, self.options, decoding, self.keeper_address
            )

    def _with_schema(
        self, options: ReadOptions, schema: StructType
    ) -> tuple[ReadOptions, Decoding]:
        decoding = self._decoding
        if decoding is None:  # The user gave Spark a schema.
            decoding = resolve(options.decode, options.topics)
        return _with_schema(options, decoding, schema)

    def _parsed(self) -> tuple[ClusterConnection, ReadOptions]:
        options = replace(ReadOptions.of(self.options), parallelism=self.parallelism)
        return ClusterConnection.of(self.options, takes_kafkas=True), options


def register(spark: SparkSession, *, lease_idle_s: float = LEASE_IDLE_S) -> None:
    """Register the format `rlm` with a session.

    The driver renews a stream's read leases until the stream ends, and those of batch queries until
    the application has run no job for `lease_idle_s`. Then it releases them. When the process ends,
    it releases all leases. If there is no keeper, as with Spark Connect, batch leases expire.
    """
    keeper = application_keeper(spark, idle_s=lease_idle_s)
    address = None if keeper is None else keeper.address
    # One class per session: Spark sends an importable class by its name alone, without attributes.
    own = {"keeper_address": address, "parallelism": _parallelism(spark)}
    spark.dataSource.register(type("RlmDataSource", (RlmDataSource,), own))


def explain(spark: SparkSession, **options: str) -> DataFrame:
    """Return a row for each partition with what `load()` would read now with these options.

    Raises the errors of a query's planning. Reads nothing from the store.
    """
    given = ReadOptions.of(options)
    parsed = replace(given, lease_ms=0, parallelism=_parallelism(spark))
    with open_planner(ClusterConnection.of(options, takes_kafkas=True), parsed) as planner:
        summaries = planner.summary(parsed)
    return spark.createDataFrame([_row_of(each) for each in summaries], _EXPLAINED)


def _parallelism(spark: SparkSession) -> int:
    """Return the default parallelism; 0 for a Spark Connect session, which does not know it."""
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkException:
        return 0


def _row_of(summary: PartitionSummary) -> dict[str, object]:
    tip, offsets = summary.topic_id_partition, summary.offsets
    counted = {
        name: value
        for name, value in asdict(summary).items()
        if name not in ("topic_id_partition", "offsets")
    }
    return {
        "topic": tip.topic,
        "partition": tip.partition,
        "start_offset": offsets.start_offset,
        "end_offset": offsets.end_offset,
        **counted,
    }


def _with_schema(
    options: ReadOptions, decoding: Decoding, schema: StructType
) -> tuple[ReadOptions, Decoding]:
    """Select the columns of a user's schema. Raises InvalidConfigError if they do not fit."""
    columns = decoding.columns(options.columns)
    decoded = decoding.spark_types(options.columns, quoted=False)
    own = {name: decoded.get(name) or spark_types((name,))[name] for name in columns}
    given = {field.name: field.dataType.simpleString() for field in schema}
    wrong = {name: kind for name, kind in given.items() if own.get(name) != kind}
    if options.mode is Mode.PERMISSIVE and UNREADABLE not in given:
        raise InvalidConfigError(
            "cannot read with mode PERMISSIVE: "
            "the schema lacks the column with the reasons for unreadable offsets",
            advice=f"Add the column {UNREADABLE} to the schema, or use another mode",
        )
    if wrong or not given:
        raise InvalidConfigError(
            "the schema is invalid: it does not fit the data source",
            found=", ".join(f"{name} {kind}" for name, kind in wrong.items()),
            expected=f"one or more of {decoded_ddl(options.columns, decoding)}",
            advice="Omit the schema, or use the expected columns",
        )
    chosen = tuple(schema.fieldNames())
    of_records = decoding.needed(options.columns, chosen)
    return replace(options, columns=of_records), replace(decoding, output=chosen)
