"""A gateway's counts as a scrape shows them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry

from rlm.gateway.app.metrics import GatewayMetrics, GatewaySources, gateway_descriptions
from rlm.gateway.model.counters import GatewayCounts, RemoteCount
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from rlm.metrics.description import MetricDescription
from rlm.metrics.metrics import Metrics
from rlm.remote_read.anomalies import AnomalyLabels
from rlm.remote_read.segment_parts import SegmentPart
from rsm.cache.chunk_cache import ChunkCache
from tests.log_dir_builder import ManualClock

ANOMALY = {"topic": "orders", "partition": "3", "kind": "corrupt"}


def _registry(counts: GatewayCounts) -> CollectorRegistry:
    """Return the registry of a gateway's process, with the metrics of every process."""
    with ThreadPoolExecutor(1) as pool:
        cache = ChunkCache[SegmentPart](executor=pool, clock=ManualClock())
    metrics = Metrics(CollectorRegistry())
    metrics.registry.register(
        GatewayMetrics(
            GatewaySources(
                counts=counts,
                permits=ReadPermits(
                    quota=FetchQuota(FetchQuotaSettings(), 0), slot_count=110, clock=ManualClock()
                ),
                anomalies=lambda: {AnomalyLabels("orders", "3", "corrupt"): 3},
                cache=cache.state,
                cache_budget_bytes=1 << 20,
            )
        )
    )
    return metrics.registry


def test_scrape_when_things_were_counted_then_shows_them_under_their_labels() -> None:
    counts = GatewayCounts(connections=2, accepted=5)
    counts.closed[DisconnectCause.SLOW_REQUEST] += 1
    counts.remote[RemoteCount.SERVED] += 4
    counts.count_throttled(3, 250)
    counts.topic("orders").size_bytes += 7
    counts.clients.add("reader", 9, now_ms=0)
    counts.cold.add(0.03)
    registry = _registry(counts)
    found = {
        (name, *labels.values()): registry.get_sample_value(name, labels)
        for name, labels in (
            ("rlm_gateway_connections", {}),
            ("rlm_gateway_connections_closed_total", {"reason": "slow_request"}),
            ("rlm_gateway_remote_partitions_total", {"outcome": "served"}),
            ("rlm_gateway_remote_partitions_total", {"outcome": "throttled"}),
            ("kafka_server_remote_fetch_bytes_total", {"topic": "orders"}),
            ("kafka_server_remote_fetch_throttle_time_ms_sum", {}),
            ("rlm_gateway_client_remote_bytes_total", {"client_id": "reader"}),
            ("rlm_gateway_first_batch_seconds_bucket", {"source": "store", "le": "0.05"}),
            (
                "rlm_gateway_read_anomalies_total",
                {"topic": "orders", "partition": "3", "kind": "corrupt"},
            ),
            ("rlm_chunk_cache_budget_bytes", {}),
            ("kafka_log_remote_reader_task_queue_limit", {}),
        )
    }
    assert list(found.values()) == [2, 1, 4, 3, 7, 250, 9, 1, 3, 1 << 20, 110]


@pytest.mark.parametrize("description", gateway_descriptions(), ids=lambda each: each.name)
def test_descriptions_when_scraped_then_each_has_its_kind_and_labels(
    description: MetricDescription,
) -> None:
    counts = GatewayCounts()
    counts.closed[DisconnectCause.IDLE] += 1
    counts.remote[RemoteCount.SERVED] += 1
    counts.topic("orders")
    families = {family.name: family for family in _registry(counts).collect()}
    family = families[description.name.removesuffix("_total")]
    assert family.type == description.kind
    assert set(description.label_names) <= set(family.samples[0].labels)
