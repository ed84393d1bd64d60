"""Results as a benchmark writes them, with made-up figures."""

from __future__ import annotations

from bench.environment import Environment, Interpreter, Machine
from bench.measurement import Measurement
from bench.result_file import Method, Results

ENVIRONMENT = Environment(
    date="2026-01-31",
    commit="0123456789abcdef0123456789abcdef01234567",
    machine=Machine(processors=2, memory_mib=24_576, system="Linux 6.1.0 x86_64"),
    interpreter=Interpreter(
        version="CPython 3.11.2", has_pgo=True, has_lto=False, additions_s=0.512
    ),
    kafka="4.3.1",
    java="17.0.15",
)


def example_results(bench: str, *measurements: Measurement, is_short: bool = False) -> Results:
    """Return results with these figures."""
    return Results(
        bench=bench,
        environment=ENVIRONMENT,
        method=Method(runs=3, alternation="Both ways alternate.", is_short=is_short),
        measurements=measurements,
    )
