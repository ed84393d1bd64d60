"""Exports a gateway process's metrics, read from the counters of its parts at each scrape.

A metric that Kafka also has uses Kafka's name, in Prometheus spelling. Each value is that of one
process; the supervisor adds a label with the process's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from rlm.gateway.model.counters import GatewayCounts, RemoteCount, TopicCounts
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.metrics.description import (
    MetricDescription,
    MetricUnit,
    any_of,
    explained,
    one_of,
)
from rlm.metrics.labels import PARTITION, TOPIC
from rlm.metrics.measure import Measure, Samples
from rlm.remote_read.anomalies import AnomalyLabels
from rlmm.state.anomalies import AnomalyKind
from rsm.cache.chunk_cache import ChunkCacheState


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySources:
    """Represents the sources of values, which the thread of a scrape reads."""

    counts: GatewayCounts
    permits: ReadPermits
    anomalies: Callable[[], Mapping[AnomalyLabels, int]]
    cache: Callable[[], ChunkCacheState]
    cache_budget_bytes: int


class GatewayMetrics(Collector):
    """Collects the gateway's metrics. Register it once. Thread-safe."""

    def __init__(self, sources: GatewaySources) -> None:
        self._sources = sources

    def describe(self) -> Iterable[Metric]:
        return [measure.empty_family() for measure in _MEASURES]

    def collect(self) -> Iterable[Metric]:
        for measure in _MEASURES:
            yield measure.family(self._sources)
        counts = self._sources.counts
        throttled = SummaryMetricFamily(_THROTTLE_TIME.name, _THROTTLE_TIME.help, labels=[])
        throttled.add_metric([], counts.throttled_count, counts.throttled_ms)
        yield throttled
        first = HistogramMetricFamily(
            _FIRST_BATCH.name, _FIRST_BATCH.help, labels=_FIRST_BATCH.label_names
        )
        for source, latencies in zip(_FIRST_BATCH_SOURCES, (counts.warm, counts.cold), strict=True):
            first.add_metric([source], latencies.buckets(), latencies.sum_s)
        yield first


def gateway_descriptions() -> Sequence[MetricDescription]:
    """Return the descriptions of all metrics, in the order of the documentation."""
    return (
        *(measure.description for measure in _MEASURES),
        _THROTTLE_TIME,
        _FIRST_BATCH,
    )


def _one(value: Callable[[GatewaySources], float]) -> Callable[[GatewaySources], Samples]:
    return lambda sources: [((), value(sources))]


def _by_topic(value: Callable[[TopicCounts], int]) -> Callable[[GatewaySources], Samples]:
    return lambda sources: [
        ((topic,), value(counts)) for topic, counts in sources.counts.topics.copy().items()
    ]


def _cache_requests(sources: GatewaySources) -> Samples:
    counts = sources.cache().counts
    return [
        (("hit",), counts.hit_count),
        (("joined",), counts.joined_count),
        (("miss",), counts.miss_count),
    ]


_THROTTLE_TIME = MetricDescription(
    name="kafka_server_remote_fetch_throttle_time_ms",
    kind="summary",
    unit=MetricUnit.MILLISECONDS,
    labels=(),
    meaning="Milliseconds until the remote-read quota allowed the next read, summed over the "
    "fetches that got no stored data because of the quota. The count is the number of these "
    "fetches.",
)
_OUTCOMES = {
    RemoteCount.SERVED: "the response has stored batches",
    RemoteCount.READING: "the read continues in the background",
    RemoteCount.THROTTLED: "the quota is used up",
    RemoteCount.QUEUE_FULL: "too many reads run or wait",
    RemoteCount.OUT_OF_RANGE: "OFFSET_OUT_OF_RANGE",
    RemoteCount.DIVERGING: "the client's leader epoch diverges",
    RemoteCount.GAP: "no stored batch; the next one is local",
    RemoteCount.STORAGE_ERROR: "KAFKA_STORAGE_ERROR",
}
_FIRST_BATCH_SOURCES = {"memory": "first batch in memory", "store": "first batch elsewhere"}
_FIRST_BATCH = MetricDescription(
    name="rlm_gateway_first_batch_seconds",
    kind="histogram",
    unit=MetricUnit.SECONDS,
    labels=(explained("source", **_FIRST_BATCH_SOURCES),),
    meaning="Time from the start of a remote read until its batches are ready, for reads that "
    "return batches.",
)
_REMOTE_LOG = "kafka_log_remote"
_MEASURES: tuple[Measure[GatewaySources], ...] = (
    Measure(
        "kafka_server_remote_fetch_bytes",
        "counter",
        MetricUnit.BYTES,
        (TOPIC,),
        "Bytes of stored data in responses to clients.",
        _by_topic(lambda counts: counts.size_bytes),
    ),
    Measure(
        "kafka_server_remote_fetch_requests",
        "counter",
        MetricUnit.COUNT,
        (TOPIC,),
        "Started reads of a partition's stored data, from memory or from the store.",
        _by_topic(lambda counts: counts.requests),
    ),
    Measure(
        "kafka_server_remote_fetch_errors",
        "counter",
        MetricUnit.COUNT,
        (TOPIC,),
        "Reads of a partition's stored data that ended with KAFKA_STORAGE_ERROR.",
        _by_topic(lambda counts: counts.errors),
    ),
    Measure(
        f"{_REMOTE_LOG}_reader_task_queue_size",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Reads of a partition's stored data that run or wait for a thread.",
        _one(lambda sources: sources.permits.taken_count),
    ),
    Measure(
        f"{_REMOTE_LOG}_reader_task_queue_limit",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Maximum of `kafka_log_remote_reader_task_queue_size`.",
        _one(lambda sources: sources.permits.slot_count),
    ),
    Measure(
        "rlm_gateway_fetches_awaiting_permit",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Fetches that wait for the quota or for a slot in the queue of reads.",
        _one(lambda sources: sources.permits.waiting_count),
    ),
    Measure(
        "rlm_gateway_remote_partitions",
        "counter",
        MetricUnit.COUNT,
        (explained("outcome", **{each.value: text for each, text in _OUTCOMES.items()}),),
        "Partitions of fetches that needed stored data, counted when each fetch is answered.",
        lambda sources: [
            ((outcome.value,), count) for outcome, count in dict(sources.counts.remote).items()
        ],
    ),
    Measure(
        "rlm_gateway_client_remote_bytes",
        "counter",
        MetricUnit.BYTES,
        (
            any_of(
                "client_id",
                "the client's id; `other` for any further id if 100 ids have read in the last 10 "
                "minutes",
            ),
        ),
        "Bytes of stored data sent, by client id.",
        lambda sources: [((name,), size) for name, size in sources.counts.clients.sizes().items()],
    ),
    Measure(
        "rlm_gateway_connections",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Open connections of clients.",
        _one(lambda sources: sources.counts.connections),
    ),
    Measure(
        "rlm_gateway_connections_accepted",
        "counter",
        MetricUnit.COUNT,
        (),
        "Accepted connections of clients. A TLS connection counts after its handshake. Plaintext "
        "connections also count if the gateway closes them at once.",
        _one(lambda sources: sources.counts.accepted),
    ),
    Measure(
        "rlm_gateway_connections_closed",
        "counter",
        MetricUnit.COUNT,
        (one_of("reason", *(cause.value for cause in DisconnectCause)),),
        "Closed connections of clients, by disconnect cause (see docs/operations.md).",
        lambda sources: [
            ((reason.value,), count) for reason, count in dict(sources.counts.closed).items()
        ],
    ),
    Measure(
        "rlm_gateway_read_anomalies",
        "counter",
        MetricUnit.COUNT,
        (
            any_of("topic", "a topic; `other` after the first 1000 combinations of labels"),
            PARTITION,
            one_of("kind", AnomalyKind.MISSING.label, AnomalyKind.CORRUPT.label),
        ),
        "Reads that failed because a stored object is missing or corrupt.",
        lambda sources: list(sources.anomalies().items()),
    ),
    Measure(
        "rlm_chunk_cache_bytes",
        "gauge",
        MetricUnit.BYTES,
        (),
        "Bytes of memory for chunks that are cached, being read, or leased.",
        _one(lambda sources: sources.cache().buffered_bytes),
    ),
    Measure(
        "rlm_chunk_cache_budget_bytes",
        "gauge",
        MetricUnit.BYTES,
        (),
        "Maximum of `rlm_chunk_cache_bytes`: the process's share of "
        "`rsm.config.fetch.chunk.cache.size`.",
        _one(lambda sources: sources.cache_budget_bytes),
    ),
    Measure(
        "rlm_chunk_cache_requests",
        "counter",
        MetricUnit.COUNT,
        (explained("result", hit="in memory", joined="already being read", miss="starts a read"),),
        "Chunks that reads requested from the cache.",
        _cache_requests,
    ),
    Measure(
        "rlm_chunk_cache_evictions",
        "counter",
        MetricUnit.COUNT,
        (),
        "Chunks evicted to make room for others.",
        _one(lambda sources: sources.cache().evicted_count),
    ),
    Measure(
        "rlm_chunk_cache_read_ahead",
        "counter",
        MetricUnit.COUNT,
        (),
        "Chunks whose prefetch started.",
        _one(lambda sources: sources.cache().counts.read_ahead_count),
    ),
    Measure(
        "rlm_chunk_cache_reads_in_flight",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Chunks being read from the store.",
        _one(lambda sources: sources.cache().reading_count),
    ),
    Measure(
        "rlm_chunk_cache_waiting",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Reads that wait for memory in the cache.",
        _one(lambda sources: sources.cache().waiting_count),
    ),
    Measure(
        "rlm_chunk_cache_readers",
        "gauge",
        MetricUnit.COUNT,
        (),
        "Readers that share the cache's memory.",
        _one(lambda sources: sources.cache().reader_count),
    ),
)
