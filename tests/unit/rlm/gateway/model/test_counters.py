"""Bytes by client id, of which there may be any number, and buckets of latencies."""

from __future__ import annotations

import pytest

from rlm.gateway.model.counters import OTHER, ClientBytes, Latencies


def test_add_when_there_are_more_ids_than_are_counted_apart_then_the_rest_is_other() -> None:
    counted = ClientBytes(limit_count=2)
    for number in range(1_000):
        counted.add(f"client-{number}", 10, now_ms=number)
    counted.add("client-0", 5, now_ms=1_000)
    assert counted.sizes() == {"client-0": 15, "client-1": 10, OTHER: 9_980}


def test_add_when_an_id_has_not_read_for_long_then_a_new_one_takes_its_place() -> None:
    counted = ClientBytes(limit_count=2, idle_ms=100)
    counted.add("first", 10, now_ms=0)
    counted.add("second", 10, now_ms=1)
    counted.add("first", 10, now_ms=2)
    counted.add("third", 10, now_ms=101)
    assert counted.sizes() == {"first": 20, "third": 10, OTHER: 0}


def test_add_when_an_id_is_long_then_it_is_cut() -> None:
    counted = ClientBytes()
    counted.add("x" * 30_000, 1, now_ms=0)
    assert max(map(len, counted.sizes())) == 100


def test_sizes_when_a_client_calls_itself_other_then_it_counts_there() -> None:
    counted = ClientBytes(limit_count=1)
    counted.add(OTHER, 1, now_ms=0)
    counted.add("client", 2, now_ms=0)
    assert counted.sizes() == {OTHER: 3}


def test_buckets_when_durations_were_added_then_each_holds_those_up_to_its_bound() -> None:
    latencies = Latencies()
    for duration_s in (0.0001, 0.001, 0.0011, 99.0):
        latencies.add(duration_s)
    buckets = dict(latencies.buckets())
    assert (buckets["0.0005"], buckets["0.001"], buckets["0.002"]) == (1, 2, 3)
    assert (buckets["30.0"], buckets["+Inf"]) == (3, 4)
    assert latencies.sum_s == pytest.approx(99.0022)
