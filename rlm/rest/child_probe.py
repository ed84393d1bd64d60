"""Probe a child over HTTP for the supervisor: its metrics, and whether it is ready."""

from __future__ import annotations

from dataclasses import replace

import httpx
from prometheus_client.core import Metric

from rlm.rest.exposition import parse
from rlm.status.document import ReadinessReport
from rsm.segment.errors import CorruptError, RetriableError

_TIMEOUT_S = 2.0


class ChildProbe:
    """Probes children. Thread-safe; every call ends within its timeouts."""

    def __init__(self) -> None:
        # A proxy of the environment is not for processes of this host.
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def metrics(self, address: str) -> tuple[Metric, ...]:
        """Fetch a child's metrics; RetriableError without a response, CorruptError if malformed."""
        response = self._get(address, "/metrics")
        try:
            return parse(response.text)
        except ValueError as error:
            raise CorruptError("malformed metrics", address=address) from error

    def readiness(self, address: str) -> ReadinessReport:
        """Fetch whether a child is ready; RetriableError if it does not answer."""
        response = self._get(address, "/readyz")
        try:
            report = ReadinessReport.from_json(response.json())
        except (ValueError, RecursionError, CorruptError):  # RecursionError: deep nesting
            report = ReadinessReport(is_ready=False)
        if report.is_ready or report.reasons:
            return report
        return replace(report, reasons=(f"HTTP status {response.status_code} without a reason",))

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def _get(self, address: str, path: str) -> httpx.Response:
        try:
            return self._client.get(f"http://{address}{path}")
        except httpx.HTTPError as error:
            raise RetriableError("process does not answer", address=address) from error
