"""Measures the Spark jobs: `python -m bench.spark [OPTIONS]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from bench.dataset import JVM_OF_KAFKA, TOPIC, BenchSizes, produced_dataset
from bench.measurement import Measurement
from bench.metadata.topic import metadata_broker
from bench.program import option_parser, run_benchmark
from bench.result_file import Method
from bench.running import measure_memory_of_copying, running_rlm
from bench.spark.auditing import measure_auditing, measure_real_store
from bench.spark.exporting import measure_exporting
from bench.spark.reading import ReadTopics, measure_reading
from bench.spark.repairing import measure_repairing
from bench.spark.session import bench_session
from tests.services.s3 import S3Server, credentials_environment

_RECORD_BYTES = 200
_MIB = 1 << 20
_ALTERNATION = "The compared variants run alternately."


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSizes:
    """The sizes of the benchmarks. `real_objects` is the number of objects on the S3 server.

    By default, a read or an export takes at least ten seconds on two cores.
    Reads and exports run `runs` times, repairs run `repair_runs` times, and audits run once.
    """

    read_bytes: int = 3000 * _MIB
    export_bytes: int = 2500 * _MIB
    dead_letters: int = 100_000
    segments: tuple[int, ...] = (100_000, 1_000_000)
    real_objects: int = 20_000
    runs: int = 5
    repair_runs: int = 3

    @classmethod
    def short(cls) -> SparkSizes:
        """Return sizes with which the benchmarks take minutes."""
        return cls(
            read_bytes=100 * _MIB,
            export_bytes=250 * _MIB,
            runs=3,
            dead_letters=10_000,
            segments=(100_000,),
        )


def main() -> int:
    """Run the benchmarks that the command line selects; return the exit code."""
    parser = option_parser("bench.spark", __doc__)
    parser.add_argument(
        "--short", action="store_true", help="use smaller sizes, to take minutes instead of hours"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=_BENCHMARKS,
        default=_BENCHMARKS,
        help="names of the benchmarks to run (default: all)",
    )
    parser.add_argument(
        "--segments",
        type=int,
        nargs="+",
        help="numbers of segments to audit (default: 100000 1000000, with --short 100000)",
    )
    options = parser.parse_args()
    # Spark's Python workers read the store's credentials from the environment.
    os.environ.update({**credentials_environment(), "PYSPARK_PYTHON": sys.executable})
    sizes = SparkSizes.short() if options.short else SparkSizes()
    if options.segments:
        sizes = replace(sizes, segments=tuple(options.segments))
    method = Method(runs=sizes.runs, alternation=_ALTERNATION, is_short=options.short)
    return run_benchmark(
        "bench-spark",
        method,
        lambda console: (_BENCHMARKS[name](sizes, console) for name in options.only),
        options.out,
    )


def _reading(sizes: SparkSizes, console: Console) -> list[Measurement]:
    measurements: list[Measurement] = []
    with _stored_topic(sizes, sizes.read_bytes, console) as (topics, scratch):
        for cores in (1, 2):
            console.print(f"reading, Spark's cores: {cores}")
            with bench_session(scratch, cores) as spark:
                measurements += measure_reading(spark, topics, runs=sizes.runs, cores=cores)
    return measurements


def _exporting(sizes: SparkSizes, console: Console) -> list[Measurement]:
    measurements: list[Measurement] = []
    with _stored_topic(sizes, sizes.export_bytes, console) as (topics, scratch):
        for cores in (1, 2):
            console.print(f"exporting, Spark's cores: {cores}")
            with bench_session(scratch, cores) as spark:
                measurements += measure_exporting(
                    spark, topics, scratch, runs=sizes.runs, cores=cores
                )
    return measurements


@contextmanager
def _stored_topic(
    sizes: SparkSizes, total_bytes: int, console: Console
) -> Iterator[tuple[ReadTopics, Path]]:
    """Yield a topic whose rolled segments are all stored, and a directory for files."""
    dataset_sizes = BenchSizes(
        total_bytes=total_bytes,
        segment_bytes=16 * _MIB,
        record_bytes=_RECORD_BYTES,
        runs=sizes.runs,
    )
    console.print(f"producing {total_bytes // _MIB} MiB")
    with (
        produced_dataset(dataset_sizes, jvm_flags=JVM_OF_KAFKA) as dataset,
        running_rlm(dataset) as rlm,
    ):
        measure_memory_of_copying(dataset, rlm)
        topics = ReadTopics(
            servers=dataset.cluster.bootstrap_servers,
            configuration=rlm.configuration,
            stored=TOPIC,
            local=TOPIC,
            record_bytes=_RECORD_BYTES,
        )
        yield topics, dataset.scratch


def _repairing(sizes: SparkSizes, console: Console) -> list[Measurement]:
    console.print(f"repairing {sizes.dead_letters} dead letters")
    with (
        metadata_broker() as cluster,
        TemporaryDirectory(prefix="bench-") as scratch,
        S3Server(Path(scratch) / "s3") as server,
        bench_session(Path(scratch), 2) as spark,
    ):
        return measure_repairing(
            spark,
            cluster,
            server,
            Path(scratch),
            dead_letters=sizes.dead_letters,
            runs=sizes.repair_runs,
        )


def _auditing(sizes: SparkSizes, console: Console) -> list[Measurement]:
    console.print(f"auditing segments: {sizes.segments}, and objects on S3: {sizes.real_objects}")
    with (
        metadata_broker() as cluster,
        TemporaryDirectory(prefix="bench-") as scratch,
        S3Server(Path(scratch) / "s3") as server,
    ):
        measurements = measure_auditing(cluster, sizes.segments)
        return measurements + measure_real_store(cluster, server, sizes.real_objects)


_BENCHMARKS = {
    "reading": _reading,
    "exporting": _exporting,
    "repairing": _repairing,
    "auditing": _auditing,
}


if __name__ == "__main__":
    sys.exit(main())
