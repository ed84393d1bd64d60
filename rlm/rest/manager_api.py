"""The manager's HTTP API.

    GET /v1/partitions[?topic=T][&partition=N]   JSON list of what this manager hosts
    GET /metrics                                 Prometheus text
    GET /healthz                                 200 while the process serves
    GET /readyz                                  200 when ready, else 503 and the reasons

Reads what the manager shows and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlm.rest.exposition import CONTENT_TYPE, render


class ManagerView(Protocol):
    """What the API shows of a manager. All methods are thread-safe and do not wait."""

    def readiness(self) -> tuple[bool, Sequence[str]]:
        """Whether it does all of its work, and what keeps it from that."""

    def partition_status(self) -> Sequence[Mapping[str, object]]:
        """One object per hosted partition, with at least `topic` and `partition`."""


def manager_api(view: ManagerView, registry: Collector) -> Starlette:
    """The application; `registry` is what /metrics shows."""

    def partitions(request: Request) -> Response:
        topic = request.query_params.get("topic")
        number = request.query_params.get("partition")
        if number is not None and not (number.isascii() and number.isdigit()):
            return JSONResponse({"error": "partition must be a number"}, status_code=400)
        return JSONResponse(
            [
                dict(status)
                for status in view.partition_status()
                if (topic is None or status["topic"] == topic)
                and (number is None or status["partition"] == int(number))
            ]
        )

    def metrics(_: Request) -> Response:
        return Response(render(registry), media_type=CONTENT_TYPE)

    def ready(_: Request) -> Response:
        return readiness_response(*view.readiness())

    return Starlette(
        routes=[
            Route("/v1/partitions", partitions),
            Route("/metrics", metrics),
            Route("/healthz", healthy),
            Route("/readyz", ready),
        ]
    )


def healthy(_: Request) -> Response:
    """That the process serves at all."""
    return JSONResponse({"healthy": True})


def readiness_response(ready: bool, reasons: Sequence[str]) -> Response:  # noqa: FBT001
    """200 or 503, with the reasons."""
    body = {"ready": ready, "reasons": list(reasons)}
    return JSONResponse(body, status_code=200 if ready else 503)
