"""docs/http.md is up to date, and the APIs serve what it describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.routing import Route

from rlm.app.http_reference import render
from rlm.rest.manager_api import MANAGER_ENDPOINTS, manager_api
from rlm.rest.signed_api import OPEN_PATHS
from rlm.rest.supervisor_api import SUPERVISOR_ENDPOINTS, supervisor_api
from rlm.rest.worker_api import WORKER_ENDPOINTS, ApiEndpoint, worker_api
from rlm.status.explanation import OffsetExplanation
from rlm.status.retention_preview import RetentionPreview
from rsm.segment.errors import RetriableError
from tests.unit.rlm.rest.asgi_client import ask
from tests.unit.rlm.rest.signed_manager import SignedManager
from tests.unit.rlm.rest.test_manager_api import EXPLANATION, FakeManager
from tests.unit.rlm.rest.test_supervisor_api import FakeProbe, status_of
from tests.unit.rsm.program.described_json import differences

CHECKOUT = Path(__file__).resolve().parents[4]
PREVIEW = RetentionPreview(
    topic="a",
    partition=0,
    log_start_offset=0,
    new_log_start_offset=0,
    local_start_offset=0,
    new_local_start_offset=0,
)


class FullManager(FakeManager):
    """A manager that does not lead partition 1, and cannot reach the broker of the topic `away`."""

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        self.retention(topic)
        return None if partition == 1 else EXPLANATION

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        if topic == "away":
            raise RetriableError("broker does not answer")
        return (PREVIEW,)

    def delete_streamed(self, topic: str, partition: int) -> bool:
        self.retention(topic)
        return partition == 0


@dataclass(frozen=True, kw_only=True)
class Api:
    """An API while it is ready and while it is not, and the query strings to request."""

    ready: Starlette
    unready: Starlette
    endpoints: Sequence[ApiEndpoint]
    queries: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def answers(self, endpoint: ApiEndpoint) -> Sequence[httpx.Response]:
        return [
            ask(app, endpoint.method, endpoint.path + query)
            for app in (self.ready, self.unready)
            for query in self.queries.get(endpoint.path, ("",))
        ]


def _no_log() -> bytes:
    raise RetriableError("no log")


APIS = {
    "manager": Api(
        ready=manager_api(FullManager(), CollectorRegistry(), logs=bytes),
        unready=manager_api(FullManager("no store"), CollectorRegistry(), logs=_no_log),
        endpoints=MANAGER_ENDPOINTS,
        queries={
            "/v1/partitions": ("", "?topic=a&partition=1", "?partition=x"),
            "/v1/explanation": (
                "?topic=a&partition=0&offset=7",
                "?topic=a&partition=1&offset=7",
                "?topic=away&partition=0&offset=7",
                "?topic=a",
            ),
            "/v1/retention": ("?topic=a", "?topic=away", ""),
            "/v1/streamed-deletion": (
                "?topic=a&partition=0",
                "?topic=a&partition=1",
                "?topic=away&partition=0",
                "?topic=a",
            ),
        },
    ),
    "worker": Api(
        ready=worker_api(FakeManager(), CollectorRegistry()),
        unready=worker_api(FakeManager("no store"), CollectorRegistry()),
        endpoints=WORKER_ENDPOINTS,
    ),
    "supervisor": Api(
        ready=supervisor_api(lambda: (status_of("manager"),), FakeProbe(manager=())),
        unready=supervisor_api(lambda: (status_of("manager"),), FakeProbe()),
        endpoints=SUPERVISOR_ENDPOINTS,
    ),
}
SERVED = [
    pytest.param(api, endpoint, id=f"{name} {endpoint.path}")
    for name, api in APIS.items()
    for endpoint in api.endpoints
]


def test_page_when_made_again_then_equals_the_committed() -> None:
    """`make docs` writes the page."""
    assert (CHECKOUT / "docs" / "http.md").read_text(encoding="utf-8") == render()


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_api_when_it_serves_routes_then_they_are_the_declared_ones(api: Api) -> None:
    served = {
        (method, route.path)
        for route in api.ready.routes
        if isinstance(route, Route)
        for method in (route.methods or {"any"}) - {"HEAD"}
    }

    assert len(served) == len(api.ready.routes)
    assert served == {(each.method, each.path) for each in api.endpoints}
    assert [
        each.path for each in api.endpoints if f"`{each.method} {each.path}`" not in render()
    ] == []


@pytest.mark.parametrize(("api", "endpoint"), SERVED)
def test_endpoint_when_asked_then_statuses_and_bodies_are_the_declared_ones(
    api: Api, endpoint: ApiEndpoint
) -> None:
    answers = api.answers(endpoint)

    assert {each.status_code for each in answers} == endpoint.statuses.keys()
    for answer in answers:
        if answer.status_code == 200 or endpoint.path == "/readyz":
            assert [*_undescribed(endpoint, answer)] == []
        elif answer.status_code in (400, 503):
            assert answer.json().keys() == {"error"}


@pytest.mark.parametrize("endpoint", MANAGER_ENDPOINTS, ids=lambda each: each.path)
def test_manager_when_a_request_is_not_signed_then_only_open_paths_are_served(
    endpoint: ApiEndpoint,
) -> None:
    answer = ask(SignedManager().app, endpoint.method, endpoint.path)

    assert answer.status_code == (200 if endpoint.path in OPEN_PATHS else 401)


def _undescribed(endpoint: ApiEndpoint, answer: httpx.Response) -> Sequence[str]:
    if endpoint.body is None:
        is_text = answer.headers.get("content-type", "").startswith("text/plain")
        return [] if is_text else [endpoint.path]
    body = answer.json()
    return [
        text
        for each in (body if endpoint.is_list else [body])
        for text in differences(endpoint.body, each)
    ]
