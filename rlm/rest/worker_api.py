"""Serves the HTTP endpoints of every worker, which WORKER_ENDPOINTS lists.

Each API builds its routes from declared endpoints, so that docs/http.md can list all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlm.process.readiness import READINESS, ReadinessReport
from rlm.rest.exposition import CONTENT_TYPE, render
from rsm.program.json_shape import JsonField, JsonKind, JsonShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiEndpoint:
    """Represents what one route of an API accepts and returns.

    `parameters` are the meanings of the query's parameters, `statuses` those of the status codes.
    `body` is the JSON of a response with status 200 (for readiness, also 503); None if the response
    is not JSON. `is_list`: the response is a list of such documents.
    """

    path: str
    meaning: str
    statuses: Mapping[int, str]
    method: str = "GET"
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: JsonShape | None = None
    is_list: bool = False

    def route(self, serve: Callable[[Request], Response | Awaitable[Response]]) -> Route:
        """Return the route on which `serve` responds."""
        return Route(self.path, serve, methods=[self.method])


HEALTH = JsonShape(
    name="Health",
    meaning="The process answers HTTP requests.",
    fields={"healthy": JsonField(JsonKind.FLAG, "Always true.")},
)
METRICS_ENDPOINT = ApiEndpoint(
    path="/metrics",
    meaning="The metrics of the process, for Prometheus to scrape.",
    statuses={200: "Prometheus text format"},
)
HEALTH_ENDPOINT = ApiEndpoint(
    path="/healthz",
    meaning="Whether the process answers HTTP requests.",
    statuses={200: "alive"},
    body=HEALTH,
)
READINESS_ENDPOINT = ApiEndpoint(
    path="/readyz",
    meaning="Whether the process does all of its work, and if not, why.",
    statuses={200: "ready", 503: "not ready"},
    body=READINESS,
)
WORKER_ENDPOINTS = (METRICS_ENDPOINT, HEALTH_ENDPOINT, READINESS_ENDPOINT)


class WorkerView(Protocol):
    """Represents the API's view of a worker. Thread-safe, does not wait."""

    def readiness(self) -> tuple[bool, Sequence[str]]:
        """Return whether the worker does all of its work, and if not, why."""

    def warnings(self) -> Sequence[str]:
        """Return what an operator should check although the worker does its work."""


def worker_api(view: WorkerView, registry: Collector) -> Starlette:
    """Compose the application of a worker that has no further endpoints."""
    return Starlette(routes=worker_routes(view, registry))


def worker_routes(view: WorkerView, registry: Collector) -> list[Route]:
    """Return the routes; /metrics shows `registry`."""

    def metrics(_: Request) -> Response:
        return Response(render(registry), media_type=CONTENT_TYPE)

    def ready(_: Request) -> Response:
        is_ready, reasons = view.readiness()
        return readiness_response(
            ReadinessReport(
                is_ready=is_ready, reasons=tuple(reasons), warnings=tuple(view.warnings())
            )
        )

    return [
        METRICS_ENDPOINT.route(metrics),
        HEALTH_ENDPOINT.route(healthy),
        READINESS_ENDPOINT.route(ready),
    ]


def healthy(_: Request) -> Response:
    """Respond that the process is alive."""
    return JSONResponse({"healthy": True})


def readiness_response(report: ReadinessReport) -> Response:
    """Respond with the report: status 200 if ready, else 503. Warnings do not change it."""
    return JSONResponse(report.to_json(), status_code=200 if report.is_ready else 503)
