"""Measures the data source, and compares it with Spark's Kafka source on the same records."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from bench.measurement import Measurement, at_least, of_runs, ratios
from spark_tools.data_source import register

_COLUMNS = "key,value,topic,partition,offset,timestamp,timestampType"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTopics:
    """A stored topic, and a topic with the same records in its local log."""

    servers: str
    configuration: Path
    stored: str
    local: str
    record_bytes: int


def measure_reading(
    spark: SparkSession, topics: ReadTopics, *, runs: int, cores: int
) -> list[Measurement]:
    """Read all stored records with both sources alternately, after an unmeasured run of each."""
    register(spark)
    stored = (
        spark.read.format("rlm")
        .option("config", str(topics.configuration))
        .option("subscribe", topics.stored)
        .option("columns", _COLUMNS)
    )
    end_offset = stored.load().agg({"offset": "max"}).collect()[0][0] + 1
    local = records_of_broker(spark, topics, end_offset=end_offset, cores=cores)
    _seconds(local.load())
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(end_offset / _seconds(stored.load()))
        theirs.append(end_offset / _seconds(local.load()))
    mib = topics.record_bytes / (1 << 20) / cores
    name = f"{cores} core{'s' if cores > 1 else ''}"
    return [
        of_runs(
            f"data source ÷ Kafka source, {name}",
            ratios(ours, theirs),
            unit="ratio",
            peer="Spark's Kafka source reading the same records from the broker",
            goal=at_least(3, floor=2),
        ),
        of_runs(f"data source, {name}", [each / 1000 for each in ours], unit="1000 rows/s"),
        of_runs(f"data source per core, {name}", [each * mib for each in ours], unit="MiB/s"),
    ]


def records_of_broker(
    spark: SparkSession, topics: ReadTopics, *, end_offset: int, cores: int
) -> DataFrameReader:
    """Return the peer: Spark's Kafka source for the same records, with a task for each core."""
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", topics.servers)
        .option("subscribe", topics.local)
        .option("endingOffsets", json.dumps({topics.local: {"0": end_offset}}))
        .option("minPartitions", str(cores))
    )


def _seconds(frame: DataFrame) -> float:
    start = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - start
