"""Measures the job of `rlm-export`, and compares it with a Parquet export by Spark alone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from pyspark.sql import SparkSession

from bench.measurement import Measurement, at_least, of_runs, ratios
from bench.spark.reading import ReadTopics, records_of_broker
from spark_tools.export.job import Export, ExportSettings
from spark_tools.export.ranges import ExportedRange

_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType")
_FILE_BYTES = 128 << 20


def measure_exporting(
    spark: SparkSession, topics: ReadTopics, scratch: Path, *, runs: int, cores: int
) -> list[Measurement]:
    """Export all stored records with job and peer alternately, after an unmeasured run of each.

    The job's time includes planning, writing the manifest, and moving the files.
    """
    output = scratch / "exported"
    rows, _ = _exported(spark, topics, output)
    _written(spark, topics, output, rows, cores)
    ours, theirs = [], []
    for _ in range(runs):
        count, seconds = _exported(spark, topics, output)
        ours.append(count / seconds)
        theirs.append(rows / _written(spark, topics, output, rows, cores))
    name = f"{cores} core{'s' if cores > 1 else ''}"
    return [
        of_runs(
            f"export ÷ Kafka source, {name}",
            ratios(ours, theirs),
            unit="ratio",
            peer="Spark's Kafka source writing the same records from the broker as Parquet",
            goal=at_least(2),
        ),
        of_runs(
            f"export per core, {name}",
            [each / 1000 / cores for each in ours],
            unit="1000 rows/s",
            goal=at_least(1000),
        ),
    ]


def _exported(spark: SparkSession, topics: ReadTopics, output: Path) -> tuple[int, float]:
    """Export with the job; return the number of records (the end offset), and the seconds."""
    shutil.rmtree(output, ignore_errors=True)
    options = {
        "config": str(topics.configuration),
        "subscribe": topics.stored,
        "columns": ",".join((*_COLUMNS, "topic", "partition")),
    }
    settings = ExportSettings(file_bytes=_FILE_BYTES, by_date=False)
    start = time.monotonic()
    events = list(Export(spark, options, str(output), settings).run())
    seconds = time.monotonic() - start
    return sum(e.records_count for e in events if isinstance(e, ExportedRange)), seconds


def _written(spark: SparkSession, topics: ReadTopics, output: Path, rows: int, cores: int) -> float:
    """Write the broker's first `rows` records with Spark's own source; return the seconds."""
    shutil.rmtree(output, ignore_errors=True)
    local = records_of_broker(spark, topics, end_offset=rows, cores=cores)
    start = time.monotonic()
    local.load().select(*_COLUMNS).write.parquet(str(output))
    return time.monotonic() - start
