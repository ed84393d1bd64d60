"""Measures the gateway: `python -m bench.gateway [--out FILE] [--only NAME …] [--short]`.

Consumers use librdkafka's default settings, except for the size and the backoff of the fetch
queue.
The benchmarks of relayed and trimmed data run again with large fetches: up to 16 MiB of a partition
instead of 1 MiB.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from bench.gateway.backfills import measure_local_with_backfills
from bench.gateway.first_fetch import measure_delayed_first_fetch, measure_first_fetch
from bench.gateway.idle import measure_idle_connections
from bench.gateway.relay import MANY, measure_relay_to_many, measure_relay_to_one
from bench.gateway.stage import GatewaySizes, GatewayStage, running_stage
from bench.gateway.throughput import WARM_UPS, Readers, readers
from bench.gateway.trimmed import (
    measure_delayed_trimmed,
    measure_kafka_tiering,
    measure_trimmed,
)
from bench.measurement import Measurement
from bench.program import option_parser, run_benchmark
from bench.result_file import Method

# Benchmarks run in this order, because "idle" needs a gateway that uses little memory, and
# "first-fetch" needs cold caches.
BENCHMARKS: Mapping[str, Callable[[GatewayStage, Readers], list[Measurement]]] = {
    "idle": measure_idle_connections,
    "first-fetch": measure_first_fetch,
    "first-fetch-delayed": measure_delayed_first_fetch,
    "relay-1": measure_relay_to_one,
    "relay-8": measure_relay_to_many,
    "trimmed": measure_trimmed,
    "backfills": measure_local_with_backfills,
    "trimmed-delayed": measure_delayed_trimmed,
    "kafka-tiering": measure_kafka_tiering,
}
_ALTERNATION = (
    "The compared variants run alternately, and every second round reverses their order. "
    f"The first {WARM_UPS} rounds are a warm-up and are not measured."
)


def main() -> int:
    """Run the benchmarks that the command line names."""
    parser = option_parser("bench.gateway", __doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=BENCHMARKS,
        default=list(BENCHMARKS),
        help="benchmarks to run (default all)",
    )
    parser.add_argument(
        "--short", action="store_true", help="use little data, to check that the benchmark works"
    )
    options = parser.parse_args()
    _allow_many_files()
    sizes = GatewaySizes.short() if options.short else GatewaySizes()
    method = Method(runs=sizes.data.runs, alternation=_ALTERNATION, is_short=options.short)
    return run_benchmark(
        "bench-gateway",
        method,
        lambda console: [measure_gateway(sizes, options.only, console)],
        options.out,
    )


def _allow_many_files() -> None:
    """Raise the limit on open files, because many idle clients connect.

    Child processes inherit the limit.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def measure_gateway(
    sizes: GatewaySizes, names: Sequence[str], console: Console
) -> list[Measurement]:
    """Run the named benchmarks in the order of BENCHMARKS; print the name of each at its start."""
    measurements: list[Measurement] = []
    data = sizes.data
    with (
        running_stage(sizes, console) as stage,
        readers(consumers=MANY, record_bytes=data.record_bytes, runs=data.runs) as pool,
    ):
        for name, measure in BENCHMARKS.items():
            if name in names:
                console.print(name)
                measurements += measure(stage, pool)
    return measurements


if __name__ == "__main__":
    sys.exit(main())
