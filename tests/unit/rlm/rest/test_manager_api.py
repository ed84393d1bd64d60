from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from rlm.metrics.metrics import Metrics
from rlm.policy.blocked import Blocked
from rlm.rest.manager_api import manager_api
from rlm.status.document import PartitionReport
from rlm.status.explanation import OffsetExplanation
from rlm.status.retention_preview import RetentionPreview
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from tests.unit.rlm.rest.asgi_client import get, post

REPORTS = tuple(
    PartitionReport(
        topic_id_partition=TopicIdPartition(topic_id=UUID(int=1), topic=topic, partition=partition),
        role="leader",
        leader_epoch=3,
        is_claimed=True,
        trim_blocked=blocked,
    )
    for topic, partition, blocked in (
        ("a", 0, None),
        ("a", 1, Blocked(reason="young")),
        ("b", 0, None),
    )
)
EXPLANATION = OffsetExplanation(
    offset=7,
    location="both",
    leader_epoch=1,
    log_start_offset=0,
    local_start_offset=5,
    high_watermark=9,
    segments=(),
)


class FakeManager:
    def __init__(self, *reasons: str, warnings: Sequence[str] = ()) -> None:
        self._reasons = reasons
        self._warnings = warnings

    def readiness(self) -> tuple[bool, Sequence[str]]:
        return not self._reasons, self._reasons

    def warnings(self) -> Sequence[str]:
        return self._warnings

    def partition_reports(self) -> Sequence[PartitionReport]:
        return REPORTS

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        return None

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        return ()

    def run_cycle(self) -> None: ...

    def delete_streamed(self, topic: str, partition: int) -> bool:
        return False


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", REPORTS),
        ("?topic=a", REPORTS[:2]),
        ("?topic=a&partition=1", REPORTS[1:2]),
        ("?topic=absent", ()),
    ],
)
def test_partitions_when_filtered_then_lists_those(
    query: str, expected: Sequence[PartitionReport]
) -> None:
    response = get(
        manager_api(FakeManager(), CollectorRegistry(), logs=bytes), f"/v1/partitions{query}"
    )

    assert response.json() == [each.to_json() for each in expected]


LONG_NUMBER = 5_000 * "9"


@pytest.mark.parametrize("number", ["x", "", "-1", "٣", str(2**31), LONG_NUMBER])
def test_partitions_when_partition_is_no_number_then_is_a_bad_request(number: str) -> None:
    app = manager_api(FakeManager(), CollectorRegistry(), logs=bytes)

    assert get(app, f"/v1/partitions?partition={number}").status_code == 400


def test_partitions_when_partition_is_the_largest_then_lists_none() -> None:
    app = manager_api(FakeManager(), CollectorRegistry(), logs=bytes)

    response = get(app, f"/v1/partitions?partition={2**31 - 1}")

    assert (response.status_code, response.json()) == (200, [])


@pytest.mark.parametrize(("query", "status"), [("", 400), ("?topic=", 400), ("?topic=a", 200)])
def test_retention_when_the_topic_is_missing_then_is_a_bad_request(query: str, status: int) -> None:
    app = manager_api(FakeManager(), CollectorRegistry(), logs=bytes)

    assert get(app, f"/v1/retention{query}").status_code == status


def test_readyz_when_not_ready_then_503_with_the_reasons() -> None:
    response = get(
        manager_api(FakeManager("no cluster"), CollectorRegistry(), logs=bytes), "/readyz"
    )

    assert response.status_code == 503
    assert response.json() == {"ready": False, "reasons": ["no cluster"], "warnings": []}


def test_readyz_when_there_are_warnings_then_ready_all_the_same() -> None:
    manager = FakeManager(warnings=("1 stored object is damaged",))

    response = get(manager_api(manager, CollectorRegistry(), logs=bytes), "/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "reasons": [],
        "warnings": ["1 stored object is damaged"],
    }


def test_readyz_when_ready_then_200() -> None:
    assert (
        get(manager_api(FakeManager(), CollectorRegistry(), logs=bytes), "/readyz").status_code
        == 200
    )


def test_metrics_when_scraped_then_has_values_and_no_creation_times() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.copies.bytes.labels("orders").inc(7)

    text = get(manager_api(FakeManager(), metrics.registry, logs=bytes), "/metrics").text

    assert 'kafka_server_remote_copy_bytes_total{topic="orders"} 7.0' in text
    assert "_created" not in text


class AskedManager(FakeManager):
    def __init__(self, error: TieredStorageError | None = None) -> None:
        super().__init__()
        self._error = error
        self.cycles = 0
        self.requested: list[tuple[str, int]] = []

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        if self._error is not None:
            raise self._error
        return EXPLANATION if (topic, partition, offset) == ("a", 1, 7) else None

    def run_cycle(self) -> None:
        self.cycles += 1

    def delete_streamed(self, topic: str, partition: int) -> bool:
        if self._error is not None:
            raise self._error
        self.requested.append((topic, partition))
        return partition == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?topic=a&partition=1&offset=7", 200),
        ("?topic=b&partition=1&offset=7", 404),
        ("?topic=a&partition=1", 400),
        ("?partition=1&offset=7", 400),
        ("?topic=a&partition=1&offset=-7", 400),
        (f"?topic=a&partition=1&offset={2**63 - 1}", 404),
        (f"?topic=a&partition=1&offset={2**63}", 400),
        (f"?topic=a&partition=1&offset={LONG_NUMBER}", 400),
        (f"?topic=a&partition={LONG_NUMBER}&offset=7", 400),
    ],
)
def test_explanation_when_asked_for_then_answers_what_is_led_here(query: str, status: int) -> None:
    app = manager_api(AskedManager(), CollectorRegistry(), logs=bytes)

    response = get(app, f"/v1/explanation{query}")

    assert response.status_code == status
    if status == 200:
        assert response.json() == EXPLANATION.to_json()


def test_explanation_when_broker_can_not_be_asked_then_503_with_the_reason() -> None:
    app = manager_api(AskedManager(RetriableError("broker away")), CollectorRegistry(), logs=bytes)

    response = get(app, "/v1/explanation?topic=a&partition=1&offset=7")

    assert (response.status_code, response.json()) == (503, {"error": "broker away"})


def test_cycle_when_posted_then_one_is_run_and_a_get_is_refused() -> None:
    manager = AskedManager()
    app = manager_api(manager, CollectorRegistry(), logs=bytes)

    assert get(app, "/v1/cycle").status_code == 405
    assert post(app, "/v1/cycle").status_code == 202
    assert manager.cycles == 1


@pytest.mark.parametrize(
    ("query", "status", "requested"),
    [
        ("?topic=a&partition=1", 202, [("a", 1)]),
        ("?topic=a&partition=2", 404, [("a", 2)]),
        ("?topic=a", 400, []),
        ("?partition=1", 400, []),
        ("?topic=a&partition=-1", 400, []),
        (f"?topic=a&partition={LONG_NUMBER}", 400, []),
    ],
)
def test_streamed_deletion_when_posted_then_is_requested_of_what_is_led_here(
    query: str, status: int, requested: list[tuple[str, int]]
) -> None:
    manager = AskedManager()
    app = manager_api(manager, CollectorRegistry(), logs=bytes)

    assert get(app, f"/v1/streamed-deletion{query}").status_code == 405
    assert post(app, f"/v1/streamed-deletion{query}").status_code == status
    assert manager.requested == requested


def test_streamed_deletion_when_the_metadata_is_unknown_then_503_with_the_reason() -> None:
    app = manager_api(AskedManager(RetriableError("not read yet")), CollectorRegistry(), logs=bytes)

    response = post(app, "/v1/streamed-deletion?topic=a&partition=1")

    assert (response.status_code, response.json()) == (503, {"error": "not read yet"})
