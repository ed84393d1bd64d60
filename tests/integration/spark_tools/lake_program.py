"""Copies a topic with the examples that write Delta and Iceberg, in a Spark of its own.

    lake_program.py CONFIG TOPIC DIRECTORY JARS FORMAT…

Each example copies twice. Before the second copy, the program removes the end of the last batch
from the checkpoint, as if Spark had been killed there. Prints the offsets in each table as JSON.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tests.integration.spark_tools.started_streams import until_connected

_EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"


def main(config: str, topic: str, directory: str, jars: str, *formats: str) -> None:
    spark = _session(Path(directory), Path(jars), formats)
    tables = {
        "delta": (f"{directory}/delta", f"delta.`{directory}/delta`"),
        "iceberg": ("lake.kafka.copied", "lake.kafka.copied"),
    }
    offsets = {}
    for name in formats:
        table, path = tables[name]
        copy = runpy.run_path(str(_EXAMPLES / f"stream_to_{name}.py"))["copy"]
        checkpoint = Path(directory) / f"{name}-checkpoint"
        for _ in range(2):
            arguments = (spark, config, topic, table, str(checkpoint))
            until_connected(partial(copy, *arguments))
            for path_of_end in _last_batch(checkpoint):
                path_of_end.unlink()
        offsets[name] = [row.offset for row in spark.table(path).select("offset").collect()]
    spark.stop()
    sys.stdout.write(json.dumps(offsets) + "\n")


def _session(directory: Path, jars: Path, formats: Sequence[str]) -> SparkSession:
    extensions = {
        "delta": "io.delta.sql.DeltaSparkSessionExtension",
        "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    return (
        SparkSession.builder.config("spark.master", "local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(sorted(str(path) for path in jars.glob("*.jar"))))
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.sql.extensions", ",".join(extensions[name] for name in formats))
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        # With a cache, this session would not see the records that the query's session appended.
        .config("spark.sql.catalog.lake.cache-enabled", "false")
        .config("spark.sql.catalog.lake.warehouse", str(directory / "iceberg"))
        .getOrCreate()
    )


def _last_batch(checkpoint: Path) -> Iterator[Path]:
    """Yield the files that record the end of the last batch."""
    numbers = [int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    yield checkpoint / "commits" / str(max(numbers))
    yield checkpoint / "commits" / f".{max(numbers)}.crc"


if __name__ == "__main__":
    main(*sys.argv[1:])
