"""Exports a gateway process's metrics, read from the counters of its parts at each scrape.

Names are Kafka's in Prometheus spelling wherever Kafka measures the same. Values are of one
process; the supervisor adds a label with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from rlm.gateway.model.counters import GatewayCounts, RemoteCount, TopicCounts
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.metrics.metrics import MetricDescription
from rlm.remote_read.anomalies import AnomalyLabels
from rsm.cache.chunk_cache import ChunkCacheState

# Pairs of label values and sample value.
Samples = Iterable[tuple[tuple[str, ...], float]]

THROTTLE_TIME = "kafka_server_remote_fetch_throttle_time_ms"
FIRST_BATCH = "rlm_gateway_first_batch_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySources:
    """The sources of values, read on the scraping thread."""

    counts: GatewayCounts
    permits: ReadPermits
    anomalies: Callable[[], Mapping[AnomalyLabels, int]]
    cache: Callable[[], ChunkCacheState]
    cache_budget_bytes: int


@dataclass(frozen=True, slots=True)
class _Measure:
    """One metric; a counter is scraped with `_total` after its name."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    samples: Callable[[GatewaySources], Samples]

    @property
    def scraped_name(self) -> str:
        return f"{self.name}_total" if self.kind == "counter" else self.name


class GatewayMetrics(Collector):
    """The gateway's collector. Register it once. Thread-safe."""

    def __init__(self, sources: GatewaySources) -> None:
        self._sources = sources

    def describe(self) -> Iterable[Metric]:
        return [_family(measure) for measure in _MEASURES]

    def collect(self) -> Iterable[Metric]:
        for measure in _MEASURES:
            family = _family(measure)
            for labels, value in measure.samples(self._sources):
                family.add_metric(labels, value)
            yield family
        counts = self._sources.counts
        throttled = _throttle_time()
        throttled.add_metric([], counts.throttled_count, counts.throttled_ms)
        yield throttled
        first = HistogramMetricFamily(FIRST_BATCH, _FIRST_BATCH_MEANING, labels=["source"])
        for source, latencies in (("memory", counts.warm), ("store", counts.cold)):
            first.add_metric([source], latencies.buckets(), latencies.sum_s)
        yield first


def gateway_descriptions() -> Sequence[MetricDescription]:
    """Return the descriptions of all metrics, as the documentation lists them."""
    return (
        *(
            MetricDescription(
                name=measure.scraped_name,
                kind=measure.kind,
                labels=measure.labels,
                meaning=measure.meaning,
            )
            for measure in _MEASURES
        ),
        MetricDescription(
            name=THROTTLE_TIME, kind="summary", labels=(), meaning=_THROTTLE_TIME_MEANING
        ),
        MetricDescription(
            name=FIRST_BATCH, kind="histogram", labels=("source",), meaning=_FIRST_BATCH_MEANING
        ),
    )


def _family(measure: _Measure) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if measure.kind == "counter" else GaugeMetricFamily
    return kind(measure.name, measure.meaning, labels=measure.labels)


def _throttle_time() -> SummaryMetricFamily:
    return SummaryMetricFamily(THROTTLE_TIME, _THROTTLE_TIME_MEANING, labels=[])


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


_THROTTLE_TIME_MEANING = (
    "Milliseconds that the remote-read quota delayed fetches; the count is of delayed fetches."
)
_FIRST_BATCH_MEANING = (
    "Seconds from the start of a read to its batches. `source`: where the first batch was, "
    "`memory` or `store`."
)
_REMOTE_LOG = "kafka_log_remote"
_MEASURES = (
    _Measure(
        "kafka_server_remote_fetch_bytes",
        "counter",
        ("topic",),
        "Bytes of stored data sent to clients.",
        _by_topic(lambda counts: counts.size_bytes),
    ),
    _Measure(
        "kafka_server_remote_fetch_requests",
        "counter",
        ("topic",),
        "Reads of a partition from the store that started.",
        _by_topic(lambda counts: counts.requests),
    ),
    _Measure(
        "kafka_server_remote_fetch_errors",
        "counter",
        ("topic",),
        "Reads of a partition from the store that ended with KAFKA_STORAGE_ERROR.",
        _by_topic(lambda counts: counts.errors),
    ),
    _Measure(
        f"{_REMOTE_LOG}_reader_task_queue_size",
        "gauge",
        (),
        "Reads of a partition from the store that run or wait for a thread.",
        _one(lambda sources: sources.permits.taken_count),
    ),
    _Measure(
        f"{_REMOTE_LOG}_reader_task_queue_limit",
        "gauge",
        (),
        "Maximum of `kafka_log_remote_reader_task_queue_size`.",
        _one(lambda sources: sources.permits.slot_count),
    ),
    _Measure(
        "rlm_gateway_fetches_awaiting_permit",
        "gauge",
        (),
        "Fetches that wait for the quota or for a slot in the queue of reads.",
        _one(lambda sources: sources.permits.waiting_count),
    ),
    _Measure(
        "rlm_gateway_remote_partitions",
        "counter",
        ("outcome",),
        "Partitions of fetches that needed stored data. `outcome`: "
        + ", ".join(f"`{outcome.value}`" for outcome in RemoteCount)
        + ".",
        lambda sources: [
            ((outcome.value,), count) for outcome, count in dict(sources.counts.remote).items()
        ],
    ),
    _Measure(
        "rlm_gateway_client_remote_bytes",
        "counter",
        ("client_id",),
        "Bytes of stored data sent, by client id. Ids beyond the first hundred are `other`.",
        lambda sources: [((name,), size) for name, size in sources.counts.clients.sizes().items()],
    ),
    _Measure(
        "rlm_gateway_connections",
        "gauge",
        (),
        "Connections of clients that are open.",
        _one(lambda sources: sources.counts.connections),
    ),
    _Measure(
        "rlm_gateway_connections_accepted",
        "counter",
        (),
        "Connections of clients accepted, including those that were refused at once.",
        _one(lambda sources: sources.counts.accepted),
    ),
    _Measure(
        "rlm_gateway_connections_closed",
        "counter",
        ("reason",),
        "Connections of clients closed. `reason`: the disconnect cause, one of "
        + ", ".join(f"`{cause.value}`" for cause in DisconnectCause)
        + ".",
        lambda sources: [
            ((reason.value,), count) for reason, count in dict(sources.counts.closed).items()
        ],
    ),
    _Measure(
        "rlm_gateway_read_anomalies",
        "counter",
        AnomalyLabels._fields,
        "Reads that failed because of a stored object. `kind`: `missing` or `corrupt`. Partitions "
        "beyond the first thousand have the topic `other`.",
        lambda sources: list(sources.anomalies().items()),
    ),
    _Measure(
        "rlm_chunk_cache_bytes",
        "gauge",
        (),
        "Bytes of memory with chunks that are cached, being read or being sent.",
        _one(lambda sources: sources.cache().buffered_bytes),
    ),
    _Measure(
        "rlm_chunk_cache_budget_bytes",
        "gauge",
        (),
        "Maximum of `rlm_chunk_cache_bytes` (rsm.config.fetch.chunk.cache.size).",
        _one(lambda sources: sources.cache_budget_bytes),
    ),
    _Measure(
        "rlm_chunk_cache_requests",
        "counter",
        ("result",),
        "Lookups of chunks. `result`: `hit` (in memory), `joined` (already being read) or `miss`.",
        _cache_requests,
    ),
    _Measure(
        "rlm_chunk_cache_evictions",
        "counter",
        (),
        "Chunks evicted to make room for others.",
        _one(lambda sources: sources.cache().evicted_count),
    ),
    _Measure(
        "rlm_chunk_cache_read_ahead",
        "counter",
        (),
        "Chunks prefetched.",
        _one(lambda sources: sources.cache().counts.read_ahead_count),
    ),
    _Measure(
        "rlm_chunk_cache_reads_in_flight",
        "gauge",
        (),
        "Chunks being read from the store.",
        _one(lambda sources: sources.cache().reading_count),
    ),
    _Measure(
        "rlm_chunk_cache_waiting",
        "gauge",
        (),
        "Reads that wait for memory of the cache.",
        _one(lambda sources: sources.cache().waiting_count),
    ),
    _Measure(
        "rlm_chunk_cache_readers",
        "gauge",
        (),
        "Readers that share the memory of the cache.",
        _one(lambda sources: sources.cache().reader_count),
    ),
)
