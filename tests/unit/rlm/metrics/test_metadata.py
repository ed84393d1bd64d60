from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from rlm.metrics.description import MetricDescription
from rlm.metrics.metadata import MetadataCollector, metadata_descriptions
from rlmm.metrics import MetadataMetrics

COUNTED = MetadataMetrics(
    is_ready=False,
    not_ready="cache",
    applied_events_count=3,
    refused_events_count={"step_back": 2},
    skipped_events_count={"corrupt": 1},
    positions={0: 5, 7: 9},
    lag_events_count=4,
    disk_bytes=1_000,
)


def scraped(name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(MetadataCollector(lambda: COUNTED))
    return registry.get_sample_value(name, labels)


@pytest.mark.parametrize("description", metadata_descriptions(), ids=lambda each: each.name)
def test_metric_when_scraped_then_is_there_with_its_labels(description: MetricDescription) -> None:
    registry = CollectorRegistry()
    registry.register(MetadataCollector(lambda: COUNTED))

    samples = [s for family in registry.collect() for s in family.samples]

    found = {tuple(s.labels) for s in samples if s.name == description.name}
    assert found == {description.label_names}


def test_metadata_when_not_ready_then_the_reason_is_the_only_one_shown() -> None:
    assert scraped("rlm_metadata_ready") == 0
    assert scraped("rlm_metadata_not_ready", reason="cache") == 1
    assert scraped("rlm_metadata_not_ready", reason="catching_up") == 0


def test_metadata_when_scraped_then_shows_what_was_counted() -> None:
    assert scraped("rlm_metadata_events_refused_total", reason="step_back") == 2
    assert scraped("rlm_metadata_position", metadata_partition="7") == 9
    assert scraped("rlm_metadata_lag_events") == 4
    assert scraped("rlm_metadata_cache_disk_bytes") == 1_000
