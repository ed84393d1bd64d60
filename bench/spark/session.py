"""Opens a Spark session for a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.services.spark_jars import connector_jars


@contextmanager
def bench_session(scratch: Path, cores: int) -> Iterator[SparkSession]:
    """Yield a session on `cores` cores of this machine; its files are below `scratch`."""
    spark = (
        SparkSession.builder.appName("bench")
        .config("spark.master", f"local[{cores}]")
        .config("spark.jars", ",".join(connector_jars()))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(scratch))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
