"""Runs the benchmarks of streams: `python -m bench.streaming [--out FILE] [--short]`."""

from __future__ import annotations

import sys
from dataclasses import replace

from rich.console import Console

from bench.dataset import JVM_OF_KAFKA, BenchSizes, produced_dataset
from bench.measurement import Measurement
from bench.program import option_parser, run_benchmark
from bench.result_file import Method
from bench.running import rlm_without_disk, running_rlm
from bench.storage.stage import storage_stage
from bench.streaming.delays import Load, measure_delays, measure_producing_next_to_streams
from bench.streaming.offloading import measure_offloading


def main() -> int:
    """Run the benchmarks with the options of the command line; return the exit code."""
    parser = option_parser("bench.streaming", __doc__)
    parser.add_argument(
        "--short", action="store_true", help="use a quarter of the data, and run once"
    )
    options = parser.parse_args()
    sizes, load = BenchSizes(runs=3), Load()
    if options.short:
        sizes, load = BenchSizes(total_bytes=256 << 20, runs=1), Load(seconds=10.0)
    method = Method(
        runs=sizes.runs,
        alternation="The compared variants run alternately.",
        is_short=options.short,
    )
    return run_benchmark(
        "bench-streaming",
        method,
        lambda console: [measure_streaming(sizes, load, console, jvm_flags=JVM_OF_KAFKA)],
        options.out,
    )


def measure_streaming(
    sizes: BenchSizes, load: Load, console: Console, *, jvm_flags: tuple[str, ...] = ()
) -> list[Measurement]:
    """Run every benchmark; print the name of each before it starts."""
    console.print(f"producing {sizes.total_bytes >> 20} MiB")
    with storage_stage(sizes, jvm_flags=jvm_flags) as stage:
        console.print(f"streams and copies, {sizes.runs} runs of each way")
        measurements = measure_offloading(stage)
        with running_rlm(stage.dataset, stage.settings()) as rlm:
            console.print(f"produce to stored, {sizes.runs} runs of {load.seconds:.0f} s each")
            measurements += measure_delays(stage.dataset, rlm, load)
    # Latencies vary more than the other figures, so they need more runs.
    sizes = replace(sizes, runs=sizes.runs * 2 - 1)
    with produced_dataset(sizes, jvm_flags=jvm_flags) as dataset, rlm_without_disk(dataset) as rlm:
        console.print(f"producing, {sizes.runs} runs of each way")
        measurements += measure_producing_next_to_streams(dataset, rlm, load)
    return measurements


if __name__ == "__main__":
    sys.exit(main())
