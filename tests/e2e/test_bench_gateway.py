"""The gateway's benchmarks on little data: that each measures what it says, never how fast."""

from __future__ import annotations

from rich.console import Console

from bench.gateway.__main__ import BENCHMARKS, measure_gateway
from bench.gateway.stage import GatewaySizes

# The figures of each benchmark that have a goal.
RATIOS = {
    "relayed ÷ direct, 1 consumer",
    "relayed ÷ direct, 8 consumers",
    "relayed ÷ direct, 20 idle clients",
    "trimmed data ÷ local data",
    "trimmed ÷ local data, 2 ms store",
    "trimmed data ÷ Kafka's own tiering",
}
LATENCIES = {
    "index + range read",
    "first cold fetch",
    "cold fetch − both reads",
    "index + range read, 2 ms store",
    "first cold fetch, 2 ms store",
    "cold fetch − both reads, 2 ms store",
    "first cold fetch, Kafka's tiering",
    *(
        f"{which}local fetch, {way}, {load}"
        for which in ("", "p99: ")
        for way in ("direct", "gateway")
        for load in ("alone", "with 8 backfills")
    ),
}
MEMORY = {
    "gateway memory, no client": "MiB",
    "gateway memory, 20 idle clients": "MiB",
    "gateway memory per idle client": "KiB",
}


def test_benchmarks_when_run_on_little_data_then_all_is_measured() -> None:
    sizes = GatewaySizes.short()

    measurements = measure_gateway(sizes, list(BENCHMARKS), Console(quiet=True))

    units = {each.metric: each.unit for each in measurements}
    assert len(units) == len(measurements)
    assert {metric for metric, unit in units.items() if unit == "ratio"} == RATIOS
    assert {metric for metric, unit in units.items() if unit == "ms"} == LATENCIES
    assert {metric: units.get(metric) for metric in MEMORY} == MEMORY
    speeds = {each.metric: each.runs for each in measurements if each.unit == "MB/s"}
    assert all(run > 0 for runs in speeds.values() for run in runs)
    assert {each.peer for each in measurements if each.unit == "ratio"} < set(speeds)
    assert {metric for metric, unit in units.items() if unit == "s/GB"} >= {
        f"broker CPU: {metric}" for metric in speeds
    }
