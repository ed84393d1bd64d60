from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from prometheus_client import CollectorRegistry

from rlm.metrics import Metrics
from rlm.rest.manager_api import manager_api
from tests.unit.rlm.rest.asgi_client import get

PARTITIONS = [
    {"topic": "a", "partition": 0, "trim_held": None},
    {"topic": "a", "partition": 1, "trim_held": {"reason": "young"}},
    {"topic": "b", "partition": 0, "trim_held": None},
]


class FakeManager:
    def __init__(self, *reasons: str) -> None:
        self._reasons = reasons

    def readiness(self) -> tuple[bool, Sequence[str]]:
        return not self._reasons, self._reasons

    def partition_status(self) -> Sequence[Mapping[str, object]]:
        return PARTITIONS


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", PARTITIONS),
        ("?topic=a", PARTITIONS[:2]),
        ("?topic=a&partition=1", PARTITIONS[1:2]),
        ("?topic=absent", []),
    ],
)
def test_partitions_when_filtered_then_lists_those(query: str, expected: object) -> None:
    response = get(manager_api(FakeManager(), CollectorRegistry()), f"/v1/partitions{query}")

    assert response.json() == expected


def test_partitions_when_partition_is_no_number_then_is_a_bad_request() -> None:
    app = manager_api(FakeManager(), CollectorRegistry())

    assert get(app, "/v1/partitions?partition=x").status_code == 400


def test_readyz_when_not_ready_then_503_with_the_reasons() -> None:
    response = get(manager_api(FakeManager("no cluster"), CollectorRegistry()), "/readyz")

    assert response.status_code == 503
    assert response.json() == {"ready": False, "reasons": ["no cluster"]}


def test_readyz_when_ready_then_200() -> None:
    assert get(manager_api(FakeManager(), CollectorRegistry()), "/readyz").status_code == 200


def test_metrics_when_scraped_then_has_values_and_no_creation_times() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.remote_copy_bytes.labels("orders").inc(7)

    text = get(manager_api(FakeManager(), metrics.registry), "/metrics").text

    assert 'kafka_server_remote_copy_bytes_total{topic="orders"} 7.0' in text
    assert "_created" not in text
