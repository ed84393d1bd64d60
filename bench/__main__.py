"""Runs all benchmarks: `python -m bench [--out FILE]`; prints a table, and writes JSON if asked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench.copying import measure_copying
from bench.dataset import BenchSizes, produced_dataset
from bench.measurement import Measurement, print_table, write_json
from bench.partitions import measure_partitions
from bench.producing import measure_producing
from bench.reading import measure_reading
from bench.running import measure_memory_of_copying, running_rlm


def main() -> int:
    """Measure what this command line asks for."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file to write the figures to, as JSON")
    options = parser.parse_args()
    console = Console()
    measurements = measure_all(BenchSizes(), console)
    print_table(measurements, console)
    if options.out is not None:
        write_json(measurements, options.out)
    return 0


def measure_all(sizes: BenchSizes, console: Console) -> list[Measurement]:
    """Run every benchmark over one data set, printing each one's name before it starts."""
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
            console.print(f"producing, {sizes.runs} runs of each way")
            measurements += measure_producing(dataset, rlm)
    return measurements


if __name__ == "__main__":
    sys.exit(main())
