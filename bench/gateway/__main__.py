"""Measures the gateway: `python -m bench.gateway [--out FILE] [--only NAME …] [--short]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bench.gateway.relay import MANY, measure_relay_to_many, measure_relay_to_one
from bench.gateway.stage import GatewaySizes, Stage, running_stage
from bench.gateway.throughput import Readers, readers
from bench.gateway.trimmed import measure_trimmed
from bench.measurement import Measurement, print_table, write_json

# In the order in which they run.
BENCHMARKS: Mapping[str, Callable[[Stage, Readers], list[Measurement]]] = {
    "relay-1": measure_relay_to_one,
    "relay-8": measure_relay_to_many,
    "trimmed": measure_trimmed,
}
_WIDTH = 100  # of a table that goes into a file or a pipe


def main() -> int:
    """Measure what this command line asks for."""
    parser = argparse.ArgumentParser(prog="bench.gateway", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file to write the figures to, as JSON")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--short", action="store_true", help="little data: that it works")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    sizes = GatewaySizes.short() if options.short else GatewaySizes()
    measurements = measure_gateway(sizes, options.only, console)
    print_table(measurements, console)
    if options.out is not None:
        write_json(measurements, options.out)
    return 0


def measure_gateway(
    sizes: GatewaySizes, names: Sequence[str], console: Console
) -> list[Measurement]:
    """The benchmarks of those names, in their own order; the console is told what comes next."""
    measurements: list[Measurement] = []
    data = sizes.data
    with (
        running_stage(sizes, console) as stage,
        readers(consumers=MANY, record_bytes=data.record_bytes, runs=data.runs) as pool,
    ):
        for name, measure in BENCHMARKS.items():
            if name in names:
                console.print(f"{name}, {data.runs} runs of each way")
                measurements += measure(stage, pool)
    return measurements


if __name__ == "__main__":
    sys.exit(main())
