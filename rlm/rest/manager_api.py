"""The manager's HTTP API.

    GET /v1/partitions[?topic=T][&partition=N]   JSON list of what this manager hosts
    and what every worker shows (rlm.rest.worker_api)

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

from rlm.rest.worker_api import WorkerView, worker_routes


class ManagerView(WorkerView, Protocol):
    """What the API shows of a manager. All methods are thread-safe and do not wait."""

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

    return Starlette(routes=[Route("/v1/partitions", partitions), *worker_routes(view, registry)])
