"""The storage benchmarks on little data: that each measures what it says, never how fast."""

from __future__ import annotations

import pytest
from rich.console import Console

from bench.dataset import BenchSizes
from bench.storage.__main__ import measure_storage
from tests.services.s3 import credentials_environment


def test_storage_benchmarks_when_run_on_little_data_then_all_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scenario 21: the benchmark counts requests, and they are few."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)  # so that the benchmark leaves no files
    sizes = BenchSizes(total_bytes=4 << 20, segment_bytes=1 << 20, runs=1)

    measured = {each.metric: each for each in measure_storage(sizes, Console(quiet=True))}

    for way in ("boto3 put_object", "s3transfer", "obstore", "copy raw", "copy block_v1"):
        assert {measured[f"{way} ×{count}"].unit for count in (1, 4)} == {"MiB/s"}
    for way in ("boto3 get_object", "obstore get_range", "read raw", "read block_v1"):
        assert measured[way].unit == "MiB/s"
    # Two objects for each segment of 1 MiB, one read for each chunk. The SDK repeats some requests
    # if the server is busy.
    assert 2_000 <= measured["requests per GiB, copy raw"].value <= 8_000
    assert 1_000 <= measured["requests per GiB, read raw"].value <= 4_000
    ratios = [each for each in measured.values() if each.goal]
    assert len(ratios) == 6
    assert all(each.value > 0 for each in measured.values())
