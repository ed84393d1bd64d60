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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCounters:
    """Represents what one kind of attempts to write segments counts, each by topic."""

    requests: Counter
    bytes: Counter
    errors: Counter


class Metrics:
    """Represents all metrics of one manager. Thread-safe, including `forget_partition`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register every metric with `registry`; ValueError if it already has them."""
        self.registry = registry
        self._descriptions: list[MetricDescription] = []
        self._blocked_reasons: dict[tuple[Gauge, str, str], str] = {}
        self._lock = threading.Lock()
        self._define_attempts()
        self._define_copies()
        self._define_deletions()
        self._define_storage()
        self._define_state()
        self._define_disks()
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
            self.remote_overlap_bytes,
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
        self.remote_copy_throttle_time = self._counter(
            "kafka_server_remote_copy_throttle_time_ms",
            "Milliseconds that copies waited for the rate "
            "remote.log.manager.copy.max.bytes.per.second.",
            (),
        )
        self.copies_written_off = self._counter(
            "rlm_copies_written_off",
            "Attempts to copy a segment that passed their deadline without returning and were "
            "given up.",
            _BY_TOPIC,
        )
        self.remote_copy_lag_bytes = self._gauge(
            "kafka_server_remote_copy_lag_bytes",
            "Bytes of rolled segments that are not stored yet; led partitions only.",
            _BY_PARTITION,
        )
        self.remote_copy_lag_segments = self._gauge(
            "kafka_server_remote_copy_lag_segments",
            "Rolled segments that are not stored yet; led partitions only.",
            _BY_PARTITION,
        )
        self.oldest_copy_age_seconds = self._gauge(
            "rlm_oldest_copy_age_seconds",
            "Age of the oldest copy in flight, in seconds; 0 if there is none.",
            (),
        )
        self.copy_failing_partitions = self._gauge(
            "rlm_copy_failing_partitions",
            "Partitions whose last two or more attempts to copy failed. `cause`: the error's "
            "message, such as `no space left on device`; causes beyond the first ten are `other "
            "causes`.",
            ("cause",),
        )
        self.copies_hanging = self._gauge(
            "rlm_copies_hanging",
            "Attempts that were given up and have not returned; each still occupies a thread.",
            (),
        )
        self.streams_open = self._gauge(
            "rlm_streams_open",
            "Open segments of partitions that are streamed; each occupies a part of an upload.",
            (),
        )
        self.copy_concurrency = self._gauge(
            "rlm_copy_concurrency",
            "Maximum number of segments that are copied at once at this moment.",
            (),
        )

    def _define_attempts(self) -> None:
        self.copies = AttemptCounters(
            bytes=self._counter(
                "kafka_server_remote_copy_bytes",
                "Bytes of segments in successful copies.",
                _BY_TOPIC,
            ),
            requests=self._counter(
                "kafka_server_remote_copy_requests", "Attempts to copy a segment.", _BY_TOPIC
            ),
            errors=self._counter(
                "kafka_server_remote_copy_errors",
                "Attempts to copy a segment that failed.",
                _BY_TOPIC,
            ),
        )
        self.merges = AttemptCounters(
            bytes=self._counter(
                "rlm_stream_merge_bytes",
                "Bytes of segments that successful merges of small streamed segments wrote.",
                _BY_TOPIC,
            ),
            requests=self._counter(
                "rlm_stream_merge_requests", "Attempts to merge small streamed segments.", _BY_TOPIC
            ),
            errors=self._counter(
                "rlm_stream_merge_errors",
                "Attempts to merge small streamed segments that failed.",
                _BY_TOPIC,
            ),
        )
        self.merged_segments = self._counter(
            "rlm_stream_merged_segments",
            "Small streamed segments that successful merges replace.",
            _BY_TOPIC,
        )

    def _define_deletions(self) -> None:
        self.remote_delete_requests = self._counter(
            "kafka_server_remote_delete_requests",
            "Attempts to delete a segment's objects.",
            _BY_TOPIC,
        )
        self.remote_delete_errors = self._counter(
            "kafka_server_remote_delete_errors",
            "Attempts to delete a segment's objects that failed.",
            _BY_TOPIC,
        )
        self.gaps_recorded = self._counter(
            "rlm_gaps_recorded",
            "Gaps recorded. `reason`: `shed` (the manager gave up unstored data because a disk was "
            "full), `external_start` (something else moved the log start), `accepted_loss` (an "
            "operator gave up damaged objects).",
            ("topic", "reason"),
        )
        self.dead_letters = self._counter(
            "rlm_dead_letters", "Segments written to the dead-letter topic.", _BY_TOPIC
        )

    def _define_storage(self) -> None:
        self.storage_request_seconds = self._histogram(
            "rlm_storage_request_seconds",
            "Seconds of each request to the store. `operation`: the request, such as `read_range` "
            "or `create_with_content`. `result`: `ok` or the error's class.",
            ("operation", "result"),
            _REQUEST_BUCKETS_S,
        )
        self._plugin_errors = self._counter(
            "rlm_plugin_errors",
            "Calls of a plug-in that failed with an error outside its interface, returned a wrong "
            "result, or did not return in time. `class`: the plug-in, as `package.module:Class`. "
            "`method`: the called method.",
            ("class", "method"),
        )
        self.bucket_accessible = self._gauge(
            "rlm_bucket_accessible",
            "1 if the last check of the store succeeded, else 0. `task`: `store`.",
            ("task",),  # so that only checking processes export it
        )

        self.disk_cache_results = self._counter(
            "rlm_chunk_disk_cache_results",
            "Lookups in the disk cache. `result`: `hit`, `miss`, `corrupt` (a cached chunk failed "
            "its checksum) or `disk_failed`.",
            ("result",),
        )
        self.cache_objects_dropped = self._counter(
            "rlm_gateway_cache_objects_dropped",
            "Objects that a gateway's caches dropped because no client can read their segment. "
            "`reason`: `partition_deleted`, `segment_deleted`, `below_log_start`, `unknown`.",
            ("reason",),
        )

    def _define_state(self) -> None:
        self.remote_log_size_bytes = self._gauge(
            "kafka_server_remote_log_size_bytes",
            "Size of the stored log. What two segments have in common counts once.",
            _BY_PARTITION,
        )
        self.remote_overlap_bytes = self._gauge(
            "rlm_remote_overlap_bytes",
            "Bytes of finished segments beyond `kafka_server_remote_log_size_bytes`.",
            _BY_PARTITION,
        )
        self.remote_log_metadata_count = self._gauge(
            "kafka_server_remote_log_metadata_count",
            "Segments in the metadata, in any state.",
            _BY_PARTITION,
        )
        self.future_segments = self._gauge(
            "rlm_future_timestamp_segments",
            "Stored or rolled segments with a timestamp more than an hour in the future.",
            _BY_PARTITION,
        )
        self.object_anomalies = self._gauge(
            "rlm_stored_object_anomalies",
            "Stored objects of finished segments that are recorded as damaged. `kind`: `missing`, "
            "`corrupt` or `loss_accepted` (an operator gave it up).",
            (*_BY_PARTITION, "kind"),
        )
        self.local_trimmed_bytes = self._counter(
            "rlm_local_trimmed_bytes",
            "Bytes of segments that trims removed from the local log.",
            _BY_TOPIC,
        )
        self.broker_retention_limited = self._counter(
            "rlm_broker_retention_limited",
            "Times that the manager found a tiered topic with a broker retention other than -1.",
            _BY_TOPIC,
        )
        self.copy_blocked = self._gauge(
            "rlm_copy_blocked",
            "1 while rolled segments of a partition are not copied. `reason`: why, as in `rlm "
            "status`.",
            (*_BY_PARTITION, "reason"),
        )
        self.trim_blocked = self._gauge(
            "rlm_trim_blocked",
            "1 while the local log of a partition is not trimmed. `reason`: why, as in `rlm "
            "status`.",
            (*_BY_PARTITION, "reason"),
        )
        self.expiry_blocked = self._gauge(
            "rlm_expiry_blocked",
            "1 while data of a partition stays past its retention. `reason`: why, as in `rlm "
            "status`.",
            (*_BY_PARTITION, "reason"),
        )
        self.task_failures = self._counter(
            "rlm_task_failures",
            "Runs of a background task that failed. `task`: its name. `error`: the error's class.",
            ("task", "error"),
        )

    def _define_disks(self) -> None:
        self.local_disk_used_ratio = self._gauge(
            "rlm_local_disk_used_ratio",
            "Used share of a disk of `log.dirs`, from 0 to 1. `disk`: a log directory on it.",
            ("disk",),
        )
        self.local_disk_seconds_until_full = self._gauge(
            "rlm_local_disk_seconds_until_full",
            "Seconds until the disk is full at the rate of the last cycles; +Inf while it does not "
            "fill.",
            ("disk",),
        )

    def _define_security(self) -> None:
        self.http_refusals = self._counter(
            "rlm_http_requests_refused",
            "Requests that the manager's HTTP API rejected. `reason`: `unsigned`, `malformed`, "
            "`body_too_large`, `no_secret`, `unknown_secret`, `wrong_target`, `wrong_signature`, "
            "`outside_window`, `replayed` or `busy`.",
            ("reason",),
        )
        self.tls_renewals = self._counter(
            "rlm_gateway_tls_renewals",
            "Changes of certificate files that a gateway loaded. `side`: `client` or `broker`. "
            "`result`: `ok`, or `failed` (the gateway keeps the previous certificate).",
            ("side", "result"),
        )
        self.host_acls = self._gauge(
            "rlm_gateway_host_acls",
            "ACLs of the cluster that name a host. Through a gateway, brokers see the gateway's "
            "host.",
            (),
        )

    def _define_endpoints(self) -> None:
        self.gateway_unserved_brokers = self._gauge(
            "rlm_gateway_unserved_brokers",
            "Live brokers for which a gateway of the whole cluster has no endpoint; the log names "
            "them.",
            (),
        )

    def _define_scrub(self) -> None:
        self.scrubbed_segments = self._counter(
            "rlm_scrubbed_segments",
            "Stored segments that the scrub checked. `check`: `stat` (length and the store's "
            "checksum) or `read` (all bytes).",
            ("check",),
        )
        self.scrubbed_bytes = self._counter("rlm_scrubbed_bytes", "Bytes that the scrub read.", ())
        self.scrub_damaged_objects = self._counter(
            "rlm_scrub_damaged_objects",
            "Times that the scrub found a stored object missing or corrupt.",
            (),
        )
        self.scrub_skipped_segments = self._counter(
            "rlm_scrub_skipped_segments",
            "Stored segments that a pass of the scrub skipped because the store refused the check "
            "three times.",
            (),
        )
        self.scrub_pass_ended = self._gauge(
            "rlm_scrub_pass_ended_timestamp_seconds",
            "Unix time in seconds at which the scrub last ended a pass over all led partitions.",
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
