from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from prometheus_client import CollectorRegistry

from rlm.metrics.metrics import Metrics
from rlm.rest.manager_api import manager_api
from rsm.segment.errors import RetriableError, TieredStorageError
from tests.unit.rlm.rest.asgi_client import get, post

PARTITIONS = [
    {"topic": "a", "partition": 0, "trim_blocked": None},
    {"topic": "a", "partition": 1, "trim_blocked": {"reason": "young"}},
    {"topic": "b", "partition": 0, "trim_blocked": None},
]


class FakeManager:
    def __init__(self, *reasons: str, warnings: Sequence[str] = ()) -> None:
        self._reasons = reasons
        self._warnings = warnings

    def readiness(self) -> tuple[bool, Sequence[str]]:
        return not self._reasons, self._reasons

    def warnings(self) -> Sequence[str]:
        return self._warnings

    def partition_status(self) -> Sequence[Mapping[str, object]]:
        return PARTITIONS

    def explanation(self, topic: str, partition: int, offset: int) -> Mapping[str, object] | None:
        return None

    def retention(self, topic: str) -> Sequence[Mapping[str, object]]:
        return ()

    def run_cycle(self) -> None: ...


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
    assert response.json() == {"ready": False, "reasons": ["no cluster"], "warnings": []}


def test_readyz_when_there_are_warnings_then_ready_all_the_same() -> None:
    manager = FakeManager(warnings=("1 stored object is damaged",))

    response = get(manager_api(manager, CollectorRegistry()), "/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "reasons": [],
        "warnings": ["1 stored object is damaged"],
    }


def test_readyz_when_ready_then_200() -> None:
    assert get(manager_api(FakeManager(), CollectorRegistry()), "/readyz").status_code == 200


def test_metrics_when_scraped_then_has_values_and_no_creation_times() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.remote_copy_bytes.labels("orders").inc(7)

    text = get(manager_api(FakeManager(), metrics.registry), "/metrics").text

    assert 'kafka_server_remote_copy_bytes_total{topic="orders"} 7.0' in text
    assert "_created" not in text


class AskedManager(FakeManager):
    def __init__(self, error: TieredStorageError | None = None) -> None:
        super().__init__()
        self._error = error
        self.cycles = 0

    def explanation(self, topic: str, partition: int, offset: int) -> Mapping[str, object] | None:
        if self._error is not None:
            raise self._error
        return {"offset": offset, "location": "both"} if topic == "a" and partition == 1 else None

    def run_cycle(self) -> None:
        self.cycles += 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?topic=a&partition=1&offset=7", 200),
        ("?topic=b&partition=1&offset=7", 404),
        ("?topic=a&partition=1", 400),
        ("?partition=1&offset=7", 400),
        ("?topic=a&partition=1&offset=-7", 400),
    ],
)
def test_explanation_when_asked_for_then_answers_what_is_led_here(query: str, status: int) -> None:
    app = manager_api(AskedManager(), CollectorRegistry())

    assert get(app, f"/v1/explanation{query}").status_code == status


def test_explanation_when_broker_can_not_be_asked_then_503_with_the_reason() -> None:
    app = manager_api(AskedManager(RetriableError("broker away")), CollectorRegistry())

    response = get(app, "/v1/explanation?topic=a&partition=1&offset=7")

    assert (response.status_code, response.json()) == (503, {"error": "broker away"})


def test_cycle_when_posted_then_one_is_run_and_a_get_is_refused() -> None:
    manager = AskedManager()
    app = manager_api(manager, CollectorRegistry())

    assert get(app, "/v1/cycle").status_code == 405
    assert post(app, "/v1/cycle").status_code == 202
    assert manager.cycles == 1
