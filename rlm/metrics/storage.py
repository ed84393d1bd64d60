"""Defines the metrics of a process's access to the store: its operations, requests and caches."""

from __future__ import annotations

from rlm.metrics import labels
from rlm.metrics.description import DescribedMetrics, MetricUnit

_REQUEST_BUCKETS_S = (0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class StorageMetrics(DescribedMetrics):
    """Represents the metrics of the store; `Metrics` adds the others. Thread-safe."""

    def count_plugin_error(self, plugin: str, method: str) -> None:
        """Count an error of a plug-in's method."""
        self._plugin_errors.labels(plugin, method).inc()

    def count_store_request(self, operation: str) -> None:
        """Count an HTTP request to the store."""
        self._store_requests.labels(operation).inc()

    def _define_storage(self) -> None:
        self.storage_request_seconds = self._histogram(
            "rlm_storage_request_seconds",
            MetricUnit.SECONDS,
            "Duration of each operation on the store. An operation may need several HTTP requests.",
            (labels.STORE_OPERATION, labels.STORE_RESULT),
            _REQUEST_BUCKETS_S,
        )
        self._store_requests = self._counter(
            "rlm_store_http_requests",
            MetricUnit.COUNT,
            "HTTP requests to S3, Azure, Google Cloud Storage or HDFS, including retries.",
            (labels.STORE_REQUEST,),
        )
        self._plugin_errors = self._counter(
            "rlm_plugin_errors",
            MetricUnit.COUNT,
            "Plug-in calls that raised an error not defined by the interface, returned a wrong "
            "result, or did not return in time.",
            labels.PLUGIN,
        )
        self.bucket_accessible = self._gauge(
            "rlm_bucket_accessible",
            MetricUnit.FLAG,
            "1 if the last check of the store succeeded, else 0. Exported after the first check.",
            (labels.CHECKED_STORE,),
        )
        self.disk_cache_results = self._counter(
            "rlm_chunk_disk_cache_results",
            MetricUnit.COUNT,
            "Lookups of chunks in the gateway's disk cache.",
            (labels.DISK_CACHE_RESULT,),
        )
        self.cache_objects_dropped = self._counter(
            "rlm_gateway_cache_objects_dropped",
            MetricUnit.COUNT,
            "Objects that a gateway's caches dropped because no client can read their segments.",
            (labels.DROP_REASON,),
        )
