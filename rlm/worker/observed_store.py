"""Measures the store's operations, and logs slow operations."""

from __future__ import annotations

from rlm.metrics.metrics import Metrics
from rsm.config.storage import StorageConfig
from rsm.segment.clock import Clock
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.wrappers.observed import ObservedChunkStorage


def observed_store(
    storage: ChunkStorage, config: StorageConfig, metrics: Metrics, clock: Clock
) -> ChunkStorage:
    """Return a wrapper of `storage` that reports its operations to `metrics` and the log."""

    def observe(operation: str, result: str, duration_ms: int) -> None:
        metrics.storage_request_seconds.labels(operation, result).observe(duration_ms / 1000)

    return ObservedChunkStorage(storage, clock, observe, slow_ms=config.request_warning_ms)
