"""The Spark data source `rlm`: stored segments as rows, read past the brokers.

    register(spark)
    spark.read.format("rlm").option("config", "rlm.properties").option("subscribe", "orders").load()

Planned on the driver from the metadata topic, once per query; executors get pieces of segments and
read nothing but the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from spark_tools.connection import Connection
from spark_tools.reading.narrowing import Comparison, narrowed
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.planner import plan_pieces
from spark_tools.rows.schema import spark_ddl
from spark_tools.segment_partition import SegmentPartition, partition_rows
from spark_tools.stream_reader import SegmentStreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

# By name: Spark 4.0 has no filters.
_OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "EqualTo": "==",
        "In": "in",
        "GreaterThan": ">",
        "GreaterThanOrEqual": ">=",
        "LessThan": "<",
        "LessThanOrEqual": "<=",
    }
)


class SegmentRowsReader(DataSourceReader):
    """A batch query over what is stored when it is planned."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = ReadOptions.of(options)
        self._connection = Connection.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Raises InvalidConfigError, NotFoundError, RetriableError: nothing was read then."""
        return [SegmentPartition(piece) for piece in plan_pieces(self._connection, self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return partition_rows(partition, self._connection, self.options)


class RlmDataSource(DataSource):
    """Options: docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "rlm"

    def schema(self) -> str:
        return spark_ddl(ReadOptions.of(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return SegmentRowsReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        return SegmentStreamReader(self.options)


class FilteringReader(SegmentRowsReader):
    """Plans by the query's filters too; Spark evaluates them again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        comparisons = (_comparison(each) for each in filters)
        known = [each for each in comparisons if each is not None]
        self.options = self.options.narrowed(narrowed(known))
        return filters


class FilteringRlmDataSource(RlmDataSource):
    """For sessions that push filters down."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return FilteringReader(self.options)


def _comparison(pushed: Filter) -> Comparison | None:
    """A filter of Spark's on a column, as far as it may narrow what is read."""
    operator = _OPERATORS.get(type(pushed).__name__)
    column: Sequence[str] = getattr(pushed, "attribute", ())
    if operator is None or len(column) != 1:
        return None
    return Comparison(column[0], operator, getattr(pushed, "value", None))


def register(spark: SparkSession) -> None:
    """Make the format `rlm` known to a session.

    Filters are pushed down where the session allows that: Spark has it from 4.1 on, refuses a
    source that has it while it is off, and reads the setting when a query is planned.
    """
    pushed = spark.conf.get("spark.sql.python.filterPushdown.enabled", "false") == "true"
    spark.dataSource.register(FilteringRlmDataSource if pushed else RlmDataSource)
