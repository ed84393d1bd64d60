"""Runs the benchmarks of `make bench` and prints a table: `python -m bench [--out FILE]`."""

from __future__ import annotations

import sys

from rich.console import Console

from bench.copying import measure_copying
from bench.dataset import BenchSizes, produced_dataset
from bench.measurement import Measurement
from bench.partitions import measure_partitions
from bench.producing import measure_producing
from bench.program import option_parser, run_benchmark
from bench.reading import measure_reading
from bench.result_file import Method
from bench.running import measure_memory_of_copying, rlm_without_disk, running_rlm


def main() -> int:
    """Run all benchmarks with the options of the command line."""
    options = option_parser("bench", __doc__).parse_args()
    sizes = BenchSizes()
    method = Method(
        runs=sizes.runs, alternation="The compared variants run alternately.", is_short=False
    )
    return run_benchmark("bench", method, lambda on: [measure_all(sizes, on)], options.out)


def measure_all(sizes: BenchSizes, console: Console) -> list[Measurement]:
    """Run every benchmark over equal data sets; print a line before each."""
    console.print(f"producing {sizes.total_bytes >> 20} MiB")
    with produced_dataset(sizes) as dataset:
        console.print(f"copying, {sizes.runs} runs of each way")
        measurements = measure_copying(dataset)
        with running_rlm(dataset) as rlm:
            console.print("memory of `rlm run`")
            measurements += measure_memory_of_copying(dataset, rlm)
            console.print(f"reading, {sizes.runs} runs of each way")
            measurements += measure_reading(dataset, rlm.configuration)
            console.print("copying of several partitions")
            measurements += measure_partitions(dataset, rlm)
    with produced_dataset(sizes) as dataset, rlm_without_disk(dataset) as rlm:
        console.print(f"producing, {sizes.runs} runs of each way")
        measurements += measure_producing(dataset, rlm)
    return measurements


if __name__ == "__main__":
    sys.exit(main())
