"""The benchmarks on little data: that each measures what it says, never how fast."""

from __future__ import annotations

from rich.console import Console

from bench.__main__ import measure_all
from bench.dataset import BenchSizes

TINY = BenchSizes(total_bytes=6 << 20, segment_bytes=1 << 20, runs=1, read_segments=3)
UNITS = {
    "plain file copy with fsync": "MB/s",
    "segment copy to a directory": "MB/s",
    "segment copy ÷ plain copy": "ratio",
    "supervisor's memory while copying": "MiB",
    "manager's memory while copying": "MiB",
    "librdkafka consumer, local data": "MB/s",
    "scan, remote data": "MB/s",
    "rlm read, remote data": "MB/s",
    "scan ÷ consumer": "ratio",
    "rlm read ÷ consumer": "ratio",
    "rlm run copies 1 partitions": "MB/s",
    "rlm run copies 4 partitions": "MB/s",
    "rlm run copies 16 partitions": "MB/s",
    "from roll to FINISHED, a cycle each 0.5 s": "s",
    "maximum rate of a producer, topic not tiered": "MB/s",
    "maximum rate of a producer with ÷ without copying": "ratio",
    "producer, topic not tiered": "MB/s",
    "producer with ÷ without copying": "ratio",
    "its p99 latency with ÷ without": "ratio",
}


def test_benchmarks_when_run_on_little_data_then_all_is_measured() -> None:
    measurements = measure_all(TINY, Console(quiet=True))

    assert {each.metric: each.unit for each in measurements} == UNITS
    assert all(run > 0 for each in measurements for run in each.runs)
    assert all(each.peer in UNITS for each in measurements if each.unit == "ratio")
