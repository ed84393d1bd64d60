"""The metadata benchmarks on little data: that each measures what it says, never how fast."""

from __future__ import annotations

from rich.console import Console

from bench.metadata.__main__ import measure_metadata

_OF_A_TOPIC = {
    "events folded": "/s",
    "events consumed only": "/s",
    "processor time per event": "µs",
    "full rebuild": "s",
    "merged after the rebuild in": "s",
    "memory after the rebuild": "MiB",
    "lookup p50": "µs",
    "lookup p99": "µs",
    "lookup again p50": "µs",
    "lookup again p99": "µs",
    "lookup, all fields read, p50": "µs",
    "lookup, all fields read, p99": "µs",
    "memory after lookups": "MiB",
    "open to first lookup": "s",
    "disk per segment": "bytes",
}
_OF_A_DICT = {"events folded": "/s", "lookup p50": "µs", "lookup p99": "µs", "memory": "MiB"}


def test_metadata_benchmarks_when_run_on_little_data_then_all_is_measured() -> None:
    measurements = measure_metadata([2_000], 1, Console(quiet=True), lookups=500)

    units = {each.metric: each.unit for each in measurements}
    expected = {f"2 k: {metric}": unit for metric, unit in _OF_A_TOPIC.items()}
    expected |= {f"2 k in a dict: {metric}": unit for metric, unit in _OF_A_DICT.items()}
    assert units == expected
    assert all(run > 0 for each in measurements for run in each.runs)
