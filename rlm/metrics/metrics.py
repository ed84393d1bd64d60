"""Defines the metrics that managers and gateways register: meanings, names and labels.

If Kafka has the same metric, the name is Kafka's in Prometheus spelling. Other names begin with
`rlm_`. rlm.metrics.storage measures the store, rlm.metrics.metadata the metadata cache, and
rlm.gateway.app.metrics a gateway's clients. No registry is global: the program that composes a
process passes one in.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge

from rlm.metrics import labels
from rlm.metrics.description import MetricUnit
from rlm.metrics.storage import StorageMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCounters:
    """Represents the counters of one kind of attempt to write segments, by topic."""

    requests: Counter
    bytes: Counter
    errors: Counter


class Metrics(StorageMetrics):
    """Represents these metrics of one process. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register every metric with `registry`. Raises ValueError if it already has them."""
        super().__init__(registry)
        self._blocked_reasons: dict[tuple[Gauge, str, str], str] = {}
        self._lock = threading.Lock()
        self._define_attempts()
        self._define_copies()
        self._define_deletions()
        self._define_storage()
        self._define_state()
        self._define_blocked()
        self._define_disks()
        self._define_scrub()
        self._define_security()
        self._define_endpoints()

    def forget_partition(self, topic: str, partition: int) -> None:
        """Remove the gauges of a partition that this manager's broker no longer leads."""
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
        self.forget_stream(topic, partition)
        self.set_trim_blocked(topic, partition, reason=None)
        self.set_expiry_blocked(topic, partition, reason=None)
        self.set_copy_blocked(topic, partition, reason=None)

    def forget_stream(self, topic: str, partition: int) -> None:
        """Remove the gauges of a partition that is no longer streamed."""
        for gauge in (self.merge_waiting_bytes, self.merge_waiting_segments):
            gauge.remove_by_labels({"topic": topic, "partition": str(partition)})

    def set_copy_blocked(self, topic: str, partition: int, *, reason: str | None) -> None:
        """Record why a partition's segments are not copied now; None if nothing blocks copies."""
        self._set_blocked(self.copy_blocked, (topic, str(partition)), reason)

    def set_trim_blocked(self, topic: str, partition: int, *, reason: str | None) -> None:
        """Record why a partition is not trimmed now; None if nothing blocks the trim."""
        self._set_blocked(self.trim_blocked, (topic, str(partition)), reason)

    def set_expiry_blocked(self, topic: str, partition: int, *, reason: str | None) -> None:
        """Record why data past its retention does not expire; None if nothing blocks it."""
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
            MetricUnit.MILLISECONDS,
            "Time that copies waited for the rate limit "
            "remote.log.manager.copy.max.bytes.per.second.",
            (),
        )
        self.copies_written_off = self._counter(
            "rlm_copies_written_off",
            MetricUnit.COUNT,
            "Copy, stream and merge attempts that the manager gave up because they hung past their "
            "deadline.",
            labels.BY_TOPIC,
        )
        self.remote_copy_lag_bytes = self._gauge(
            "kafka_server_remote_copy_lag_bytes",
            MetricUnit.BYTES,
            "Bytes of rolled segments that are not stored yet; led partitions only.",
            labels.BY_PARTITION,
        )
        self.remote_copy_lag_segments = self._gauge(
            "kafka_server_remote_copy_lag_segments",
            MetricUnit.COUNT,
            "Rolled segments that are not stored yet; led partitions only.",
            labels.BY_PARTITION,
        )
        self.oldest_copy_age_seconds = self._gauge(
            "rlm_oldest_copy_age_seconds",
            MetricUnit.SECONDS,
            "Age of the oldest running copy of a rolled segment; 0 if there is none.",
            (),
        )
        self.copy_failing_partitions = self._gauge(
            "rlm_copy_failing_partitions",
            MetricUnit.COUNT,
            "Led partitions whose copies failed at least twice in a row.",
            (labels.FAILING_CAUSE,),
        )
        self.copies_hanging = self._gauge(
            "rlm_copies_hanging",
            MetricUnit.COUNT,
            "Given-up copy, stream and merge attempts that have not returned. Each still occupies "
            "a thread.",
            (),
        )
        self.streams_open = self._gauge(
            "rlm_streams_open",
            MetricUnit.COUNT,
            "Open segments of streamed partitions; each uses memory for one part of an upload.",
            (),
        )
        self.copy_concurrency = self._gauge(
            "rlm_copy_concurrency",
            MetricUnit.COUNT,
            "Current maximum number of segments that are copied at once.",
            (),
        )

    def _define_attempts(self) -> None:
        self.copies = self._attempts(
            "kafka_server_remote_copy",
            "copy a segment",
            written="Bytes of segments that copies and streams stored, counted when they finish.",
        )
        self.streams = self._attempts(
            "rlm_stream",
            "stream a segment",
            written="Bytes of segments that streams stored. "
            "`kafka_server_remote_copy_bytes_total` includes them.",
        )
        self.stream_reused_bytes = self._counter(
            "rlm_stream_reused_bytes",
            MetricUnit.BYTES,
            "Bytes that streams did not send again, because the store copied them from unfinished "
            "uploads of earlier attempts.",
            labels.BY_TOPIC,
        )
        self.merges = self._attempts(
            "rlm_stream_merge",
            "merge small streamed segments",
            written="Bytes of segments that successful merges of small streamed segments wrote.",
        )
        self.merged_segments = self._counter(
            "rlm_stream_merged_segments",
            MetricUnit.COUNT,
            "Small streamed segments that merges replaced; counted when the merge ends.",
            labels.BY_TOPIC,
        )
        self.merge_waiting_bytes = self._gauge(
            "rlm_stream_merge_waiting_bytes",
            MetricUnit.BYTES,
            "Bytes of small streamed segments that wait to be merged; led partitions only.",
            labels.BY_PARTITION,
        )
        self.merge_waiting_segments = self._gauge(
            "rlm_stream_merge_waiting_segments",
            MetricUnit.COUNT,
            "Small streamed segments that wait to be merged; led partitions only.",
            labels.BY_PARTITION,
        )

    def _attempts(self, prefix: str, purpose: str, *, written: str) -> AttemptCounters:
        def counter(suffix: str, unit: MetricUnit, meaning: str) -> Counter:
            return self._counter(f"{prefix}_{suffix}", unit, meaning, labels.BY_TOPIC)

        return AttemptCounters(
            bytes=counter("bytes", MetricUnit.BYTES, written),
            requests=counter("requests", MetricUnit.COUNT, f"Attempts to {purpose}."),
            errors=counter("errors", MetricUnit.COUNT, f"Failed attempts to {purpose}."),
        )

    def _define_deletions(self) -> None:
        self.remote_delete_requests = self._counter(
            "kafka_server_remote_delete_requests",
            MetricUnit.COUNT,
            "Attempts to delete a segment's objects.",
            labels.BY_TOPIC,
        )
        self.remote_delete_errors = self._counter(
            "kafka_server_remote_delete_errors",
            MetricUnit.COUNT,
            "Failed attempts to delete a segment's objects.",
            labels.BY_TOPIC,
        )
        self.gaps_recorded = self._counter(
            "rlm_gaps_recorded",
            MetricUnit.COUNT,
            "Gaps that the manager recorded.",
            (labels.TOPIC, labels.GAP_REASON),
        )
        self.dead_letters = self._counter(
            "rlm_dead_letters",
            MetricUnit.COUNT,
            "Segments whose deletion the manager gave up; it wrote a dead letter for each.",
            labels.BY_TOPIC,
        )

        self.deleted_topics = self._gauge(
            "rlm_deleted_topics",
            MetricUnit.COUNT,
            "Deleted tiered topics with this name whose stored data is not deleted yet.",
            (labels.TOPIC, labels.REMOVAL),
        )

    def _define_state(self) -> None:
        self.remote_log_size_bytes = self._gauge(
            "kafka_server_remote_log_size_bytes",
            MetricUnit.BYTES,
            "Size of the stored log. Offsets that two segments share count once.",
            labels.BY_PARTITION,
        )
        self.remote_overlap_bytes = self._gauge(
            "rlm_remote_overlap_bytes",
            MetricUnit.BYTES,
            "Bytes of finished segments that `kafka_server_remote_log_size_bytes` does not count.",
            labels.BY_PARTITION,
        )
        self.remote_log_metadata_count = self._gauge(
            "kafka_server_remote_log_metadata_count",
            MetricUnit.COUNT,
            "Segments in the metadata, in any state.",
            labels.BY_PARTITION,
        )
        self.future_segments = self._gauge(
            "rlm_future_timestamp_segments",
            MetricUnit.COUNT,
            "Stored or rolled segments with a timestamp more than an hour in the future.",
            labels.BY_PARTITION,
        )
        self.object_anomalies = self._gauge(
            "rlm_stored_object_anomalies",
            MetricUnit.COUNT,
            "Objects that have a recorded anomaly, in finished segments.",
            (*labels.BY_PARTITION, labels.ANOMALY_KIND),
        )
        self.local_trimmed_bytes = self._counter(
            "rlm_local_trimmed_bytes",
            MetricUnit.BYTES,
            "Bytes of segments that trims removed from the local log.",
            labels.BY_TOPIC,
        )
        self.broker_retention_limited = self._counter(
            "rlm_broker_retention_limited",
            MetricUnit.COUNT,
            "Checks that found a limited broker retention on a tiered topic. The broker can then "
            "delete its data.",
            labels.BY_TOPIC,
        )

    def _define_blocked(self) -> None:
        self.copy_blocked = self._gauge(
            "rlm_copy_blocked",
            MetricUnit.FLAG,
            "1 while a rule blocks copies of a partition. docs/operations.md explains each reason.",
            (*labels.BY_PARTITION, labels.COPY_BLOCKED),
        )
        self.trim_blocked = self._gauge(
            "rlm_trim_blocked",
            MetricUnit.FLAG,
            "1 while a rule blocks trims of a partition. docs/operations.md explains each reason.",
            (*labels.BY_PARTITION, labels.TRIM_BLOCKED),
        )
        self.expiry_blocked = self._gauge(
            "rlm_expiry_blocked",
            MetricUnit.FLAG,
            "1 while a rule keeps data of a partition past its retention.",
            (*labels.BY_PARTITION, labels.EXPIRY_BLOCKED),
        )
        self.task_failures = self._counter(
            "rlm_task_failures",
            MetricUnit.COUNT,
            "Failed runs of a background task.",
            (labels.TASK, labels.ERROR_CLASS),
        )

    def _define_disks(self) -> None:
        self.local_disk_used_ratio = self._gauge(
            "rlm_local_disk_used_ratio",
            MetricUnit.RATIO,
            "Used share of a disk of `log.dirs`, from 0 to 1.",
            (labels.DISK,),
        )
        self.local_disk_seconds_until_full = self._gauge(
            "rlm_local_disk_seconds_until_full",
            MetricUnit.SECONDS,
            "Time until the disk is full at the rate of the last cycles; +Inf while its usage does "
            "not grow.",
            (labels.DISK,),
        )

    def _define_security(self) -> None:
        self.http_refusals = self._counter(
            "rlm_http_requests_refused",
            MetricUnit.COUNT,
            "Requests that the manager's HTTP API rejected.",
            (labels.REFUSAL,),
        )
        self.tls_renewals = self._counter(
            "rlm_gateway_tls_renewals",
            MetricUnit.COUNT,
            "Attempts of a gateway to load changed certificate files.",
            (labels.TLS_SIDE, labels.TLS_RESULT),
        )
        self.host_acls = self._gauge(
            "rlm_gateway_host_acls",
            MetricUnit.COUNT,
            "ACLs of the cluster that name a host, counted when the gateway starts. For clients of "
            "a gateway, brokers see the gateway's host.",
            (),
        )

    def _define_endpoints(self) -> None:
        self.gateway_unserved_brokers = self._gauge(
            "rlm_gateway_unserved_brokers",
            MetricUnit.COUNT,
            "Live brokers for which a gateway of the whole cluster has no endpoint. Its log names "
            "them.",
            (),
        )

    def _define_scrub(self) -> None:
        self.scrubbed_segments = self._counter(
            "rlm_scrubbed_segments",
            MetricUnit.COUNT,
            "Stored segments that the scrub checked.",
            (labels.SCRUB_CHECK,),
        )
        self.scrubbed_bytes = self._counter(
            "rlm_scrubbed_bytes",
            MetricUnit.BYTES,
            "Bytes of segments that the scrub read, counted after each segment.",
            (),
        )
        self.scrub_damaged_objects = self._counter(
            "rlm_scrub_damaged_objects",
            MetricUnit.COUNT,
            "Missing or corrupt objects that the scrub found. An object counts again in each pass.",
            (),
        )
        self.scrub_skipped_segments = self._counter(
            "rlm_scrub_skipped_segments",
            MetricUnit.COUNT,
            "Stored segments that a pass of the scrub skipped: their check failed three times, or "
            "too many other segments waited for a retry.",
            (),
        )
        self.scrub_pass_ended = self._gauge(
            "rlm_scrub_pass_ended_timestamp_seconds",
            MetricUnit.UNIX_SECONDS,
            "Time at which the scrub last ended a pass over all led partitions.",
            (),
        )
