"""Serve the HTTP endpoints of every worker.

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
from rlm.status.document import ReadinessReport


class WorkerView(Protocol):
    """Represents the API's view of a worker. Thread-safe, does not wait."""

    def readiness(self) -> tuple[bool, Sequence[str]]:
        """Return whether the worker does all of its work, and if not, why."""

    def warnings(self) -> Sequence[str]:
        """Return what an operator should check although the worker does its work."""


def worker_api(view: WorkerView, registry: Collector) -> Starlette:
    """Compose the application of a worker without further endpoints."""
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
        Route("/metrics", metrics),
        Route("/healthz", healthy),
        Route("/readyz", ready),
    ]


def healthy(_: Request) -> Response:
    """Respond that the process serves."""
    return JSONResponse({"healthy": True})


def readiness_response(report: ReadinessReport) -> Response:
    """Respond with 200 or 503 and the reasons; warnings do not change the status."""
    return JSONResponse(report.to_json(), status_code=200 if report.is_ready else 503)
