"""Runs the storage benchmarks: `python -m bench.storage [--out FILE] [--short]`."""

from __future__ import annotations

import sys

from rich.console import Console

from bench.dataset import BenchSizes
from bench.measurement import Measurement
from bench.program import option_parser, run_benchmark
from bench.result_file import Method
from bench.storage.copying import measure_copying, measure_requests_and_memory
from bench.storage.reading import measure_reading
from bench.storage.stage import storage_stage


def main() -> int:
    """Run the benchmarks that the command line selects; return the exit code."""
    parser = option_parser("bench.storage", __doc__)
    parser.add_argument(
        "--short", action="store_true", help="use a quarter of the data, and run once"
    )
    options = parser.parse_args()
    sizes = BenchSizes(runs=3)
    if options.short:
        sizes = BenchSizes(total_bytes=256 << 20, runs=1)
    method = Method(
        runs=sizes.runs, alternation="All variants run alternately.", is_short=options.short
    )
    return run_benchmark(
        "bench-storage", method, lambda console: [measure_storage(sizes, console)], options.out
    )


def measure_storage(sizes: BenchSizes, console: Console) -> list[Measurement]:
    """Run every benchmark with one data set; print the name of each before it starts."""
    console.print(f"producing {sizes.total_bytes >> 20} MiB")
    with storage_stage(sizes) as stage:
        console.print(f"copying, {sizes.runs} runs of each way")
        measurements = measure_requests_and_memory(stage) + measure_copying(stage)
        console.print(f"reading, {sizes.runs} runs of each way")
        return measurements + measure_reading(stage)


if __name__ == "__main__":
    sys.exit(main())
