"""Serves the manager's HTTP API, which MANAGER_ENDPOINTS lists.

Requests change nothing, with two exceptions: they can start a cycle early, and request the deletion
of streamed segments. The manager itself decides what it deletes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rlm.rest.worker_api import WORKER_ENDPOINTS, ApiEndpoint, WorkerView, worker_routes
from rlm.status.document import PARTITION_REPORT, PartitionReport
from rlm.status.document_parts import Json
from rlm.status.explanation import OFFSET_EXPLANATION, OffsetExplanation
from rlm.status.retention_preview import RETENTION_PREVIEW, RetentionPreview
from rsm.segment.errors import TieredStorageError

_PARTITION_MAX = 2**31 - 1
_OFFSET_MAX = 2**63 - 1
_DIGITS = re.compile("[0-9]{1,19}")
_UNAVAILABLE = "the broker does not answer or the metadata cannot be read; `error` says why"
_PARTITIONS = ApiEndpoint(
    path="/v1/partitions",
    meaning="The partitions on this host, as of the last cycle.",
    parameters={
        "topic": "only partitions of this topic",
        "partition": "only partitions with this number",
    },
    statuses={
        200: "listed; the list is empty if no partition matches",
        400: "`partition` is not a number",
    },
    body=PARTITION_REPORT,
    is_list=True,
)
_EXPLANATION = ApiEndpoint(
    path="/v1/explanation",
    meaning="Where a record is, and why it is or is not on the broker.",
    parameters={
        "topic": "required",
        "partition": "required: the partition's number",
        "offset": "required: the record's offset",
    },
    statuses={
        200: "explained",
        400: "a parameter is missing or not a number",
        404: "the manager does not lead the partition: `null`",
        503: _UNAVAILABLE,
    },
    body=OFFSET_EXPLANATION,
)
_RETENTION = ApiEndpoint(
    path="/v1/retention",
    meaning="What retention would do now to the partitions led by this manager.",
    parameters={"topic": "required: the topic's name"},
    statuses={
        200: "listed; the list is empty if the manager leads none",
        400: "the topic is missing",
        503: _UNAVAILABLE,
    },
    body=RETENTION_PREVIEW,
    is_list=True,
)
_CYCLE = ApiEndpoint(
    method="POST",
    path="/v1/cycle",
    meaning="Runs a cycle now instead of at the end of the interval.",
    statuses={202: "accepted; the response does not wait for the cycle and has no body"},
)
_STREAMED_DELETION = ApiEndpoint(
    method="POST",
    path="/v1/streamed-deletion",
    meaning="Requests the deletion of a partition's streamed segments. The manager deletes a "
    "segment only if other segments contain its records.",
    parameters={"topic": "required", "partition": "required: the partition's number"},
    statuses={
        202: "accepted; the response has no body",
        400: "a parameter is missing or not a number",
        404: "this manager does not lead the partition",
        503: "the metadata cannot be read; `error` says why",
    },
)
_LOGS = ApiEndpoint(
    path="/v1/logs",
    meaning="The last log lines of all processes of the host, 1 MiB at most. The secrets of the "
    "configuration are masked.",
    statuses={
        200: "text, with a line `==> PROCESS.log <==` before the lines of each process",
        503: "`state.dir` cannot be read or contains no log; `error` says why",
    },
)
MANAGER_ENDPOINTS = (
    _PARTITIONS,
    _EXPLANATION,
    _RETENTION,
    _CYCLE,
    _STREAMED_DELETION,
    _LOGS,
    *WORKER_ENDPOINTS,
)


class ManagerView(WorkerView, Protocol):
    """Represents the API's view of a manager. All methods are thread-safe."""

    def partition_reports(self) -> Sequence[PartitionReport]:
        """Return a report of each hosted partition. Does not wait."""

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        """Return where a record is; None if this manager does not lead the partition.

        Sends requests to the broker, and raises their TieredStorageError.
        """

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        """Return what retention would do to the topic's led partitions.

        Raises the same errors as `explanation`.
        """

    def run_cycle(self) -> None:
        """Request a cycle now. Does not wait."""

    def delete_streamed(self, topic: str, partition: int) -> bool:
        """Request the deletion of a partition's streamed segments, and a cycle.

        Does not wait. Returns False if this manager does not lead the partition. Raises
        RetriableError while the metadata cannot be read.
        """


def manager_api(view: ManagerView, registry: Collector, *, logs: Callable[[], bytes]) -> Starlette:
    """Compose the application; /metrics shows `registry`.

    `logs` returns the last log lines of the host's processes; it may raise TieredStorageError.
    """

    def partitions(request: Request) -> Response:
        topic = request.query_params.get("topic")
        text = request.query_params.get("partition")
        number = None if text is None else _number(text, _PARTITION_MAX)
        if text is not None and number is None:
            error = "partition is invalid: it must be a number"
            return JSONResponse({"error": error}, status_code=400)
        return JSONResponse(
            [
                report.to_json()
                for report in view.partition_reports()
                if topic in (None, report.topic_id_partition.topic)
                and number in (None, report.topic_id_partition.partition)
            ]
        )

    def explanation(request: Request) -> Response:
        query = request.query_params
        partition = _number(query.get("partition", ""), _PARTITION_MAX)
        offset = _number(query.get("offset", ""), _OFFSET_MAX)
        if "topic" not in query or partition is None or offset is None:
            error = (
                "cannot explain an offset: `topic`, a numeric `partition` and a numeric `offset` "
                "are required"
            )
            return JSONResponse({"error": error}, status_code=400)

        def explain() -> Json | None:
            found = view.explanation(query["topic"], partition, offset)
            return None if found is None else found.to_json()

        return _respond(explain)

    def retention(request: Request) -> Response:
        topic = request.query_params.get("topic")
        if not topic:
            error = "cannot preview retention: `topic` is required"
            return JSONResponse({"error": error}, status_code=400)
        return _respond(lambda: [each.to_json() for each in view.retention(topic)])

    return Starlette(
        routes=[
            _PARTITIONS.route(partitions),
            _EXPLANATION.route(explanation),
            _RETENTION.route(retention),
            *_command_routes(view),
            _LOGS.route(lambda _: _text(logs)),
            *worker_routes(view, registry),
        ]
    )


def _command_routes(view: ManagerView) -> list[Route]:
    """Return the routes of requests that change something."""

    def run_cycle(_request: Request) -> Response:
        view.run_cycle()
        return Response(status_code=202)

    def delete_streamed(request: Request) -> Response:
        topic = request.query_params.get("topic")
        partition = _number(request.query_params.get("partition", ""), _PARTITION_MAX)
        if not topic or partition is None:
            error = "cannot request the deletion: `topic` and a numeric `partition` are required"
            return JSONResponse({"error": error}, status_code=400)
        try:
            is_led = view.delete_streamed(topic, partition)
        except TieredStorageError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        return Response(status_code=202) if is_led else JSONResponse(None, status_code=404)

    return [_CYCLE.route(run_cycle), _STREAMED_DELETION.route(delete_streamed)]


def _number(text: str, largest: int) -> int | None:
    """Return the number in a query; None if it is not a number from 0 to `largest`."""
    # Python refuses to convert very long texts, so the pattern limits the digits.
    if _DIGITS.fullmatch(text) is None or int(text) > largest:
        return None
    return int(text)


def _text(ask: Callable[[], bytes]) -> Response:
    """Respond with the text; with 503 and the reason if `ask` fails."""
    try:
        return PlainTextResponse(ask())
    except TieredStorageError as error:
        return JSONResponse({"error": str(error)}, status_code=503)


def _respond(ask: Callable[[], object]) -> Response:
    """Respond with the result; with 404 if it is None, with 503 and the reason if `ask` fails."""
    try:
        found = ask()
    except TieredStorageError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    return JSONResponse(found, status_code=404 if found is None else 200)
