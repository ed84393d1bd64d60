"""Measures the Spark jobs: `python -m bench.spark [--short] [--out FILE]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from bench.dataset import TOPIC, BenchSizes, Dataset, produced_dataset
from bench.measurement import Measurement, print_table, write_json
from bench.running import measure_memory_of_copying, running_rlm
from bench.spark.reading import ReadTopics, measure_reading
from bench.spark.repairing import measure_repairing
from tests.services.s3 import S3Server, credentials_environment

_JARS = Path(__file__).resolve().parents[2] / "build" / "spark-jars"
_RECORD_BYTES = 200
_MIB = 1 << 20


def main() -> int:
    """Measure what this command line asks for."""
    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--out", type=Path, help="file to write the figures to, as JSON")
    parser.add_argument("--short", action="store_true", help="a tenth of the letters and records")
    options = parser.parse_args()
    # Python workers, which Spark starts, look for the store's credentials here.
    os.environ.update({**credentials_environment(), "PYSPARK_PYTHON": sys.executable})
    console = Console()
    measurements = measure_all(console, short=options.short)
    print_table(measurements, console)
    if options.out is not None:
        write_json(measurements, options.out)
    return 0


def measure_all(console: Console, *, short: bool) -> list[Measurement]:
    """Every benchmark over one broker; the console is told what comes next."""
    sizes = BenchSizes(
        total_bytes=(100 if short else 1000) * _MIB,
        segment_bytes=16 * _MIB,
        record_bytes=_RECORD_BYTES,
        runs=3,
    )
    console.print(f"producing {sizes.total_bytes // _MIB} MiB")
    measurements: list[Measurement] = []
    with produced_dataset(sizes) as dataset:
        with running_rlm(dataset) as rlm:
            measure_memory_of_copying(dataset, rlm)
            for cores in (1, 2):
                console.print(f"reading on {cores} of two cores")
                with _session(dataset, cores) as spark:
                    topics = ReadTopics(
                        servers=dataset.cluster.bootstrap_servers,
                        configuration=rlm.configuration,
                        stored=TOPIC,
                        local=TOPIC,
                        record_bytes=_RECORD_BYTES,
                    )
                    measurements += measure_reading(spark, topics, runs=sizes.runs, cores=cores)
        letters = 10_000 if short else 100_000
        console.print(f"repairing {letters} letters")
        with S3Server(dataset.scratch / "s3") as server, _session(dataset, 2) as spark:
            measurements += measure_repairing(
                spark, dataset.cluster, server, dataset.scratch, letters=letters
            )
    return measurements


@contextmanager
def _session(dataset: Dataset, cores: int) -> Iterator[SparkSession]:
    spark = (
        SparkSession.builder.appName("bench")
        .config("spark.master", f"local[{cores}]")
        .config("spark.jars", ",".join(str(path) for path in sorted(_JARS.glob("*.jar"))))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(dataset.scratch))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
