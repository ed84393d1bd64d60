"""Define the manager's metrics: what they measure, their names, and their labels.

If Kafka measures the same, the name is Kafka's in Prometheus spelling; other names begin with
`rlm_`. rlm.gateway.app.metrics measures a gateway's clients, rlm.metrics.metadata the metadata
cache. No registry is global: the program that composes a process passes one in.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BY_TOPIC = ("topic",)
_BY_PARTITION = ("topic", "partition")
_REQUEST_BUCKETS_S = (0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDescription:
    """Represents one metric as the documentation lists it, with its exported name."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


class Metrics:
    """Represents all metrics of one manager. Thread-safe, including `forget_partition`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register every metric with `registry`; ValueError if it already has them."""
        self.registry = registry
        self._descriptions: list[MetricDescription] = []
        self._blocked_reasons: dict[tuple[Gauge, str, str], str] = {}
        self._lock = threading.Lock()
        self._define_copies()
        self._define_deletions()
        self._define_storage()
        self._define_state()
        self._define_scrub()
        self._define_security()
        self._define_endpoints()

    def descriptions(self) -> tuple[MetricDescription, ...]:
        """Return all metrics in the order of the documentation."""
        return tuple(self._descriptions)

    def forget_partition(self, topic: str, partition: int) -> None:
        """Remove the gauges of a partition that this manager no longer leads."""
        for gauge in (
            self.remote_copy_lag_bytes,
            self.remote_copy_lag_segments,
            self.remote_log_size_bytes,
            self.remote_log_metadata_count,
            self.future_segments,
            self.object_anomalies,
        ):
            gauge.remove_by_labels({"topic": topic, "partition": str(partition)})
        self.set_trim_blocked(topic, partition, reason=None)
        self.set_expiry_blocked(topic, partition, reason=None)
        self.set_copy_blocked(topic, partition, reason=None)

    def plugin_failed(self, plugin: str, method: str) -> None:
        """Count an error of a plug-in's method."""
        self._plugin_errors.labels(plugin, method).inc()

    def set_copy_blocked(self, topic: str, partition: int, *, reason: str | None) -> None:
        """Record why rolled segments of a partition are not copied now; None if unblocked."""
        self._set_blocked(self.copy_blocked, (topic, str(partition)), reason)

    def set_trim_blocked(self, topic: str, partition: int, *, reason: str | None) -> None:
        """Record why a partition is not trimmed now; None if unblocked."""
        self._set_blocked(self.trim_blocked, (topic, str(partition)), reason)

    def set_expiry_blocked(self, topic: str, partition: int, *, reason: str | None) -> None:
        """Record why data past its retention does not expire; None if unblocked."""
        self._set_blocked(self.expiry_blocked, (topic, str(partition)), reason)

    def _set_blocked(self, gauge: Gauge, subject: tuple[str, str], reason: str | None) -> None:
        with self._lock:
            previous = self._blocked_reasons.pop((gauge, *subject), None)
            if reason is not None:
                self._blocked_reasons[gauge, *subject] = reason
            if previous is not None and previous != reason:
                gauge.remove(*subject, previous)
            if reason is not None:
                gauge.labels(*subject, reason).set(1)

    def _define_copies(self) -> None:
        self.remote_copy_bytes = self._counter(
            "kafka_server_remote_copy_bytes", "Bytes of log segments copied.", _BY_TOPIC
        )
        self.remote_copy_requests = self._counter(
            "kafka_server_remote_copy_requests", "Attempts to copy a segment.", _BY_TOPIC
        )
        self.remote_copy_errors = self._counter(
            "kafka_server_remote_copy_errors", "Attempts to copy that failed.", _BY_TOPIC
        )
        self.remote_copy_throttle_time = self._counter(
            "kafka_server_remote_copy_throttle_time_ms",
            "How long copies were kept waiting by remote.log.manager.copy.max.bytes.per.second.",
            (),
        )
        self.copies_written_off = self._counter(
            "rlm_copies_written_off",
            "Attempts to copy that hung beyond their deadline and were given up.",
            _BY_TOPIC,
        )
        self.remote_copy_lag_bytes = self._gauge(
            "kafka_server_remote_copy_lag_bytes",
            "Bytes of rolled segments that are not stored yet.",
            _BY_PARTITION,
        )
        self.remote_copy_lag_segments = self._gauge(
            "kafka_server_remote_copy_lag_segments",
            "Rolled segments that are not stored yet.",
            _BY_PARTITION,
        )
        self.oldest_copy_age_seconds = self._gauge(
            "rlm_oldest_copy_age_seconds", "Age of the oldest copy in flight, 0 if none.", ()
        )
        self.copy_failing_partitions = self._gauge(
            "rlm_copy_failing_partitions",
            "Partitions whose last two or more attempts to copy failed, by cause, like "
            "`no space left on device`; ten causes at most, the rest are `other causes`.",
            ("cause",),
        )
        self.copies_hanging = self._gauge(
            "rlm_copies_hanging",
            "Attempts that were written off and have not come back: each still holds a thread.",
            (),
        )
        self.copy_concurrency = self._gauge(
            "rlm_copy_concurrency", "How many segments may be copied at once now.", ()
        )

    def _define_deletions(self) -> None:
        self.remote_delete_requests = self._counter(
            "kafka_server_remote_delete_requests", "Attempts to delete a segment.", _BY_TOPIC
        )
        self.remote_delete_errors = self._counter(
            "kafka_server_remote_delete_errors", "Attempts to delete that failed.", _BY_TOPIC
        )
        self.gaps_recorded = self._counter(
            "rlm_gaps_recorded",
            "Gaps recorded. `reason`: shed or external_start (records that went from the broker "
            "before they were stored), accepted_loss (damaged objects that an operator gave up).",
            ("topic", "reason"),
        )
        self.dead_letters = self._counter(
            "rlm_dead_letters", "Segments reported to the dead-letter topic.", _BY_TOPIC
        )

    def _define_storage(self) -> None:
        self.storage_request_seconds = self._histogram(
            "rlm_storage_request_seconds",
            "Requests to the store and how long they took; result is ok or the error's class.",
            ("operation", "result"),
            _REQUEST_BUCKETS_S,
        )
        self._plugin_errors = self._counter(
            "rlm_plugin_errors",
            "Errors of a plug-in other than those of its interface, wrong results, and calls that "
            "did not return in time; class is package.module:Class.",
            ("class", "method"),
        )
        self.bucket_accessible = self._gauge(
            "rlm_bucket_accessible",
            "1 if the store could be used as it is configured when last tried, else 0.",
            ("task",),  # so that only checking processes export it
        )

        self.disk_cache_results = self._counter(
            "rlm_chunk_disk_cache_results",
            "Reads that the disk cache answered, had not, or had damaged; failures of its disk.",
            ("result",),
        )
        self.cache_objects_dropped = self._counter(
            "rlm_gateway_cache_objects_dropped",
            "Objects of the store that a gateway's caches dropped because nobody can read their "
            "segment any more: partition_deleted, segment_deleted, below_log_start, unknown.",
            ("reason",),
        )

    def _define_state(self) -> None:
        self.remote_log_size_bytes = self._gauge(
            "kafka_server_remote_log_size_bytes",
            "Bytes of finished segments in the store.",
            _BY_PARTITION,
        )
        self.remote_log_metadata_count = self._gauge(
            "kafka_server_remote_log_metadata_count",
            "Segments that the metadata lists.",
            _BY_PARTITION,
        )
        self.future_segments = self._gauge(
            "rlm_future_timestamp_segments",
            "Segments, stored or rolled, that are stamped more than an hour ahead of now.",
            _BY_PARTITION,
        )
        self.object_anomalies = self._gauge(
            "rlm_stored_object_anomalies",
            "Stored objects of finished segments on record as damaged, each once. `kind`: missing, "
            "corrupt or loss_accepted (an operator gave it up).",
            (*_BY_PARTITION, "kind"),
        )
        self.local_trimmed_bytes = self._counter(
            "rlm_local_trimmed_bytes", "Bytes that trims released from the local log.", _BY_TOPIC
        )
        self.broker_retention_limited = self._counter(
            "rlm_broker_retention_limited",
            "Times a tiered topic was found with a broker retention other than -1.",
            _BY_TOPIC,
        )
        self.copy_blocked = self._gauge(
            "rlm_copy_blocked",
            "1 while rolled segments of a partition are not copied, for the reason in the label.",
            (*_BY_PARTITION, "reason"),
        )
        self.trim_blocked = self._gauge(
            "rlm_trim_blocked",
            "1 while a partition's local log is not trimmed, for the reason in the label.",
            (*_BY_PARTITION, "reason"),
        )
        self.expiry_blocked = self._gauge(
            "rlm_expiry_blocked",
            "1 while data of a partition stays past its retention, for the reason in the label.",
            (*_BY_PARTITION, "reason"),
        )
        self.local_disk_used_ratio = self._gauge(
            "rlm_local_disk_used_ratio",
            "How much of a disk of log dirs is used, of 1.",
            ("disk",),
        )
        self.local_disk_seconds_until_full = self._gauge(
            "rlm_local_disk_seconds_until_full",
            "When that disk is full, at its rate of the last cycles; +Inf while it does not fill.",
            ("disk",),
        )
        self.task_failures = self._counter(
            "rlm_task_failures", "Steps of a task that ended with an error.", ("task", "error")
        )

    def _define_security(self) -> None:
        self.http_refusals = self._counter(
            "rlm_http_requests_refused",
            "Requests that the manager's HTTP API refused: unsigned, malformed, body_too_large, "
            "no_secret, unknown_secret, wrong_target, wrong_signature, outside_window, replayed, "
            "or busy.",
            ("reason",),
        )
        self.tls_renewals = self._counter(
            "rlm_gateway_tls_renewals",
            "Changed certificate files that a gateway took for new connections, or could not.",
            ("side", "result"),
        )
        self.host_acls = self._gauge(
            "rlm_gateway_host_acls",
            "ACLs of the cluster that name a host, which behind a gateway is the gateway's.",
            (),
        )

    def _define_endpoints(self) -> None:
        self.gateway_unserved_brokers = self._gauge(
            "rlm_gateway_unserved_brokers",
            "Live brokers that a gateway of the whole cluster has no address for: see the log.",
            (),
        )

    def _define_scrub(self) -> None:
        self.scrubbed_segments = self._counter(
            "rlm_scrubbed_segments",
            "Stored segments that the scrub checked. `check`: stat (length and checksum as the "
            "store keeps them) or read (all bytes).",
            ("check",),
        )
        self.scrubbed_bytes = self._counter("rlm_scrubbed_bytes", "Bytes that the scrub read.", ())
        self.scrub_damaged_objects = self._counter(
            "rlm_scrub_damaged_objects",
            "Times the scrub found a stored object missing or corrupt.",
            (),
        )
        self.scrub_skipped_segments = self._counter(
            "rlm_scrub_skipped_segments",
            "Times the scrub could not check a stored segment in a pass: the store refused it "
            "three times.",
            (),
        )
        self.scrub_pass_ended = self._gauge(
            "rlm_scrub_pass_ended_timestamp_seconds",
            "When the scrub last ended a pass over all led partitions, in Unix time.",
            (),
        )

    def _counter(self, name: str, meaning: str, labels: Sequence[str]) -> Counter:
        self._describe(f"{name}_total", "counter", meaning, labels)
        return Counter(name, meaning, labels, registry=self.registry)

    def _histogram(
        self, name: str, meaning: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> Histogram:
        self._describe(name, "histogram", meaning, labels)
        return Histogram(name, meaning, labels, buckets=buckets, registry=self.registry)

    def _gauge(self, name: str, meaning: str, labels: Sequence[str]) -> Gauge:
        self._describe(name, "gauge", meaning, labels)
        return Gauge(name, meaning, labels, registry=self.registry)

    def _describe(self, name: str, kind: str, meaning: str, labels: Iterable[str]) -> None:
        self._descriptions.append(
            MetricDescription(name=name, kind=kind, labels=tuple(labels), meaning=meaning)
        )
