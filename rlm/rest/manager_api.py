"""Serve the manager's HTTP API.

    GET /v1/partitions[?topic=T][&partition=N]   JSON list of the partitions on this host
    GET /v1/explanation?topic=T&partition=N&offset=O   where a record is; 404 if not led here
    GET /v1/retention?topic=T   what retention would do now to the partitions led here
    POST /v1/cycle   run a cycle now instead of at the end of the interval
    and the endpoints of every worker (rlm.rest.worker_api)

Changes nothing, except that a cycle runs a little earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlm.rest.worker_api import WorkerView, worker_routes
from rlm.status.document import Json, PartitionReport
from rlm.status.explanation import OffsetExplanation
from rlm.status.retention_preview import RetentionPreview
from rsm.segment.errors import TieredStorageError


class ManagerView(WorkerView, Protocol):
    """Represents the API's view of a manager. All methods are thread-safe."""

    def partition_reports(self) -> Sequence[PartitionReport]:
        """Return a report of each hosted partition; does not wait."""

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        """Return where a record is; None if this manager does not lead the partition.

        Sends requests to the broker: raises RetriableError and others if it fails.
        """

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        """Return what retention would do to each led partition; raises as `explanation`."""

    def run_cycle(self) -> None:
        """Run a cycle now; does not wait."""


def manager_api(view: ManagerView, registry: Collector) -> Starlette:
    """Compose the application; /metrics shows `registry`."""

    def partitions(request: Request) -> Response:
        topic = request.query_params.get("topic")
        number = request.query_params.get("partition")
        if number is not None and not (number.isascii() and number.isdigit()):
            return JSONResponse({"error": "partition must be a number"}, status_code=400)
        return JSONResponse(
            [
                report.to_json()
                for report in view.partition_reports()
                if topic in (None, report.topic_id_partition.topic)
                and (number is None or report.topic_id_partition.partition == int(number))
            ]
        )

    def explanation(request: Request) -> Response:
        query = request.query_params
        numbers = [query.get(name, "") for name in ("partition", "offset")]
        if "topic" not in query or not all(n.isascii() and n.isdigit() for n in numbers):
            return JSONResponse({"error": "topic, partition and offset needed"}, status_code=400)
        partition, offset = map(int, numbers)

        def explain() -> Json | None:
            found = view.explanation(query["topic"], partition, offset)
            return None if found is None else found.to_json()

        return _answer(explain)

    def retention(request: Request) -> Response:
        topic = request.query_params.get("topic", "")
        return _answer(lambda: [each.to_json() for each in view.retention(topic)])

    def run_cycle(_request: Request) -> Response:
        view.run_cycle()
        return Response(status_code=202)

    return Starlette(
        routes=[
            Route("/v1/partitions", partitions),
            Route("/v1/explanation", explanation),
            Route("/v1/retention", retention),
            Route("/v1/cycle", run_cycle, methods=["POST"]),
            *worker_routes(view, registry),
        ]
    )


def _answer(ask: Callable[[], object]) -> Response:
    """Respond with the result: 404 for None, 503 with the reason after an error."""
    try:
        found = ask()
    except TieredStorageError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    return JSONResponse(found, status_code=404 if found is None else 200)
