"""Runs a benchmark as a program: parses options, prints tables, and writes results as JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console

from bench.environment import Environment, current_environment
from bench.measurement import Measurement, print_table
from bench.result_file import Method, Results

_WIDTH = 120  # This is the width in characters if the output is a file or a pipe.

# A benchmark measures its parts in order, so that `run_benchmark` can print each one when it is
# complete.
Parts = Callable[[Console], Iterable[list[Measurement]]]


def option_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command line, with the options of all benchmarks."""
    parser = argparse.ArgumentParser(prog=module, description=(description or "").splitlines()[0])
    parser.add_argument(
        "--out", type=_output_path, metavar="FILE", help="file to write all runs to, as JSON"
    )
    return parser


def _output_path(text: str) -> Path:
    """Return the path. Creates its directory before the measurement, which may take hours."""
    path = Path(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def run_benchmark(
    bench: str,
    method: Method,
    parts: Parts,
    out: Path | None,
    *,
    describe: Callable[[], Environment] = current_environment,
) -> int:
    """Measure all parts, print them, and write them to `out`; return the exit code."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    environment = describe()
    measurements: list[Measurement] = []
    for part in parts(console):
        print_table(part, console)
        measurements += part
    if out is not None:
        results = Results(
            bench=bench, environment=environment, method=method, measurements=tuple(measurements)
        )
        out.write_text(results.to_json())
    return 0
