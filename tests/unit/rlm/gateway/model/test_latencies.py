"""Buckets of latencies."""

from __future__ import annotations

import pytest

from rlm.gateway.model.latencies import Latencies


def test_buckets_when_durations_were_added_then_each_holds_those_up_to_its_bound() -> None:
    latencies = Latencies()
    for duration_s in (0.0001, 0.001, 0.0011, 99.0):
        latencies.add(duration_s)
    buckets = dict(latencies.buckets())
    assert (buckets["0.0005"], buckets["0.001"], buckets["0.002"]) == (1, 2, 3)
    assert (buckets["30.0"], buckets["+Inf"]) == (3, 4)
    assert latencies.sum_s == pytest.approx(99.0022)
