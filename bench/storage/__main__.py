"""Runs the storage benchmarks: `python -m bench.storage [--out FILE] [--short]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench.dataset import BenchSizes
from bench.measurement import Measurement, print_table, write_json
from bench.storage.copying import measure_copying, measure_requests_and_memory
from bench.storage.reading import measure_reading
from bench.storage.stage import storage_stage


def main() -> int:
    """Measure what this command line asks for."""
    parser = argparse.ArgumentParser(prog="bench.storage", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file to write the figures to, as JSON")
    parser.add_argument(
        "--short", action="store_true", help="use a quarter of the data, and run once"
    )
    options = parser.parse_args()
    console = Console()
    sizes = BenchSizes(runs=3)
    if options.short:
        sizes = BenchSizes(total_bytes=256 << 20, runs=1)
    measurements = measure_storage(sizes, console)
    print_table(measurements, console)
    if options.out is not None:
        write_json(measurements, options.out)
    return 0


def measure_storage(sizes: BenchSizes, console: Console) -> list[Measurement]:
    """Run every benchmark over one data set, printing the phases before they start."""
    console.print(f"producing {sizes.total_bytes >> 20} MiB")
    with storage_stage(sizes) as stage:
        console.print(f"copying, {sizes.runs} runs of each way")
        measurements = measure_requests_and_memory(stage) + measure_copying(stage)
        console.print(f"reading, {sizes.runs} runs of each way")
        return measurements + measure_reading(stage)


if __name__ == "__main__":
    sys.exit(main())
