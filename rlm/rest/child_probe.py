"""Probe a child over HTTP for the supervisor: its metrics, and whether it is ready."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException

from prometheus_client.core import Metric

from rlm.process.readiness import ReadinessReport
from rlm.rest.exposition import parse
from rsm.segment.errors import CorruptError, RetriableError

_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response:
    status: int
    body: bytes


class ChildProbe:
    """Probes children. Thread-safe; every call ends within its timeouts.

    It uses the standard library's client, whose import is cheap: `rlm run` lives for its children.
    """

    def metrics(self, address: str) -> tuple[Metric, ...]:
        """Fetch a child's metrics; RetriableError without a response, CorruptError if malformed."""
        response = self._get(address, "/metrics")
        try:
            return parse(response.body.decode())
        except ValueError as error:
            raise CorruptError("malformed metrics", address=address) from error

    def readiness(self, address: str) -> ReadinessReport:
        """Fetch whether a child is ready; RetriableError if it does not answer."""
        response = self._get(address, "/readyz")
        try:
            report = ReadinessReport.from_json(json.loads(response.body))
        except (ValueError, RecursionError, CorruptError):  # RecursionError: deep nesting
            report = ReadinessReport(is_ready=False)
        if report.is_ready or report.reasons:
            return report
        return replace(report, reasons=(f"HTTP status {response.status} without a reason",))

    def _get(self, address: str, path: str) -> _Response:
        connection = HTTPConnection(address, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return _Response(status=response.status, body=response.read())
        except (OSError, HTTPException) as error:
            raise RetriableError("process does not answer", address=address) from error
        finally:
            connection.close()
