from __future__ import annotations

from prometheus_client import CollectorRegistry

from rlm.metrics.metrics import Metrics
from rlm.worker.observed_store import observed_store
from rsm.config.storage import StorageConfig
from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.clock import FakeClock


def test_observed_store_when_asked_then_its_requests_are_counted_and_timed() -> None:
    metrics = Metrics(CollectorRegistry())
    config = StorageConfig.model_validate({"rsm.config.storage.filesystem.root": "/store"})
    storage = observed_store(MemoryChunkStorage(wall_ms=lambda: 0), config, metrics, FakeClock())

    storage.create("a")

    name = "rlm_storage_request_seconds_count"
    labels = {"operation": "create", "result": "ok"}
    assert metrics.registry.get_sample_value(name, labels) == 1
