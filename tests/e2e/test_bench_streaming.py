"""The benchmarks of streams on little data: that each measures what it says, never how fast."""

from __future__ import annotations

import pytest
from rich.console import Console

from bench.dataset import BenchSizes
from bench.streaming.__main__ import measure_streaming
from bench.streaming.delays import Load
from tests.services.s3 import credentials_environment

SIZES = BenchSizes(total_bytes=4 << 20, segment_bytes=1 << 20, runs=1)
LOAD = Load(rates_mb=(1, 2), seconds=2.0, rollover_ms=1_000)
UNITS = {
    "segment mode ×1": "MB/s",
    "stream mode ×1": "MB/s",
    "stream ÷ segment mode ×1": "ratio",
    "segment mode: CPU per GB": "s",
    "stream mode: CPU per GB": "s",
    "segment mode: requests per GiB": "requests",
    "stream mode: requests per GiB": "requests",
    "segment mode ×4": "MB/s",
    "stream mode ×4": "MB/s",
    "stream ÷ segment mode ×4": "ratio",
    "segment memory ×4": "MiB",
    "stream memory ×4": "MiB",
    "produced at 1 MB/s": "MB/s",
    "produce to stored, 1 MB/s, p50": "s",
    "produce to stored, 1 MB/s, p99": "s",
    "produced at 2 MB/s": "MB/s",
    "produce to stored, 2 MB/s, p50": "s",
    "produce to stored, 2 MB/s, p99": "s",
    "maximum rate of a producer, topic not tiered": "MB/s",
    "maximum rate of a producer with ÷ without streaming": "ratio",
    "producer, topic not tiered": "MB/s",
    "producer with ÷ without streaming": "ratio",
    "its p99 latency with ÷ without": "ratio",
}


def test_streaming_benchmarks_when_run_on_little_data_then_all_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)  # so that the benchmark leaves nothing

    measurements = measure_streaming(SIZES, LOAD, Console(quiet=True))

    assert {each.metric: each.unit for each in measurements} == UNITS
    # For this little data the process may need no more memory than before.
    assert [each for each in measurements if min(each.runs) <= 0 and each.unit != "MiB"] == []
    assert all(each.peer in UNITS for each in measurements if each.unit == "ratio")
    # Two objects for a copied segment of 1 MiB, three for a streamed segment.
    found = {each.metric: each.value for each in measurements}
    assert 2_000 <= found["segment mode: requests per GiB"] <= 8_000
    more = found["stream mode: requests per GiB"] - found["segment mode: requests per GiB"]
    assert 1_000 <= more <= 8_000
