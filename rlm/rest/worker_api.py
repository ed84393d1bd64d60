"""What every worker's HTTP API has.

GET /metrics   Prometheus text
GET /healthz   200 while the process serves
GET /readyz    200 when ready, else 503 and the reasons; warnings in either case
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlm.rest.exposition import CONTENT_TYPE, render


class WorkerView(Protocol):
    """What the API shows of a worker. Thread-safe, does not wait."""

    def readiness(self) -> tuple[bool, Sequence[str]]:
        """Whether it does all of its work, and what keeps it from that."""

    def warnings(self) -> Sequence[str]:
        """What a person should look at although the process does its work."""


def worker_api(view: WorkerView, registry: Collector) -> Starlette:
    """The application of a worker that shows no more than that."""
    return Starlette(routes=worker_routes(view, registry))


def worker_routes(view: WorkerView, registry: Collector) -> list[Route]:
    """The routes; `registry` is what /metrics shows."""

    def metrics(_: Request) -> Response:
        return Response(render(registry), media_type=CONTENT_TYPE)

    def ready(_: Request) -> Response:
        return readiness_response(*view.readiness(), warnings=view.warnings())

    return [
        Route("/metrics", metrics),
        Route("/healthz", healthy),
        Route("/readyz", ready),
    ]


def healthy(_: Request) -> Response:
    """That the process serves at all."""
    return JSONResponse({"healthy": True})


def readiness_response(
    ready: bool,  # noqa: FBT001
    reasons: Sequence[str],
    *,
    warnings: Sequence[str] = (),
) -> Response:
    """200 or 503, with the reasons. Warnings change nothing of that."""
    body = {"ready": ready, "reasons": list(reasons), "warnings": list(warnings)}
    return JSONResponse(body, status_code=200 if ready else 503)
