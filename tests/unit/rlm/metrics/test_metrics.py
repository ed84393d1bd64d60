from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry

from rlm.app.metrics_reference import render
from rlm.metrics.metrics import Metrics

CHECKOUT = Path(__file__).resolve().parents[4]


def test_metrics_page_when_made_again_then_equals_the_committed() -> None:
    page = render()

    assert (CHECKOUT / "docs" / "metrics.md").read_text(encoding="utf-8") == page


def test_trim_blocked_when_the_reason_changes_then_only_the_new_one_is_shown() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.set_trim_blocked("orders", 0, reason="not_active")
    metrics.set_trim_blocked("orders", 1, reason="not_active")

    metrics.set_trim_blocked("orders", 0, reason="young")

    assert _trim_blocked(metrics) == {("0", "young"), ("1", "not_active")}


def test_forget_partition_when_it_had_gauges_then_they_are_gone() -> None:
    metrics = Metrics(CollectorRegistry())
    for partition in (0, 1):
        metrics.remote_copy_lag_bytes.labels("orders", str(partition)).set(5)
        metrics.set_trim_blocked("orders", partition, reason="young")

    metrics.forget_partition("orders", 0)

    labels = {"topic": "orders", "partition": "0"}
    name = "kafka_server_remote_copy_lag_bytes"
    assert metrics.registry.get_sample_value(name, labels) is None
    assert metrics.registry.get_sample_value(name, {**labels, "partition": "1"}) == 5
    assert _trim_blocked(metrics) == {("1", "young")}


def _trim_blocked(metrics: Metrics) -> set[tuple[str, str]]:
    return {
        (sample.labels["partition"], sample.labels["reason"])
        for family in metrics.trim_blocked.collect()
        for sample in family.samples
    }
