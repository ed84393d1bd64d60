"""Fetches a child's metrics and readiness over HTTP, for the supervisor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from threading import Lock
from typing import NamedTuple

from prometheus_client.core import Metric

from rlm.process.readiness import ReadinessReport
from rlm.rest.exposition import parse
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError

_TIMEOUT_S = 2.0
_PATIENCE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response:
    status: int
    body: bytes


class ChildProbe:
    """Represents an HTTP client for children. Thread-safe. Limits the connect and each read to 2 s.

    Uses the standard library's client, whose import is cheap, so that the supervisor stays small.
    """

    def metrics(self, address: str) -> tuple[Metric, ...]:
        """Fetch a child's metrics.

        Raises RetriableError if the child does not answer, CorruptError if they are malformed.
        """
        response = self._get(address, "/metrics")
        try:
            return parse(response.body.decode())
        except ValueError as error:
            raise CorruptError(
                "cannot read the process's metrics: they are malformed", address=address
            ) from error

    def readiness(self, address: str) -> ReadinessReport:
        """Fetch whether a child is ready; a malformed response counts as not ready.

        Raises RetriableError if the child does not answer.
        """
        response = self._get(address, "/readyz")
        try:
            report = ReadinessReport.from_json(json.loads(response.body))
        except (ValueError, RecursionError, CorruptError):  # RecursionError: deep nesting
            report = ReadinessReport(is_ready=False)
        if report.is_ready or report.reasons:
            return report
        return replace(report, reasons=(f"it gave no reason (http_status={response.status})",))

    def _get(self, address: str, path: str) -> _Response:
        connection = HTTPConnection(address, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return _Response(status=response.status, body=response.read())
        except (OSError, HTTPException) as error:
            raise RetriableError("the process does not answer", address=address) from error
        finally:
            connection.close()


class ChildRun(NamedTuple):
    """Represents one run of a child: after a restart, the process has another id."""

    name: str
    pid: int


class LastReadiness:
    """Represents the last known readiness of children. Thread-safe.

    All children are probed at once, each by at most one thread. If a child does not answer within
    `patience_s`, its last known readiness counts. Before its first answer, a child is not ready.
    """

    def __init__(
        self,
        probe: Callable[[str], ReadinessReport],
        *,
        most_children: int,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """`probe` takes a child's address, and raises TieredStorageError if there is no answer."""
        self._probe = probe
        self._patience_s = patience_s
        self._threads = ThreadPoolExecutor(max(1, most_children), "readiness-probe")
        self._lock = Lock()
        self._running: dict[ChildRun, Future[ReadinessReport]] = {}
        self._known: dict[ChildRun, ReadinessReport] = {}

    def of(self, addresses: Mapping[ChildRun, str]) -> Mapping[ChildRun, ReadinessReport]:
        """Return the readiness of running children, and forget all others."""
        with self._lock:
            self._take_reports()
            for run, address in addresses.items():
                if run not in self._running:
                    self._running[run] = self._threads.submit(self._report, address)
            probes = [self._running[run] for run in addresses]
        wait(probes, self._patience_s)
        with self._lock:
            self._take_reports()
            self._known = {run: self._known[run] for run in addresses if run in self._known}
            return {
                run: self._known.get(run) or _starting(address)
                for run, address in addresses.items()
            }

    def _take_reports(self) -> None:
        for run in [run for run, probe in self._running.items() if probe.done()]:
            self._known[run] = self._running.pop(run).result()

    def _report(self, address: str) -> ReadinessReport:
        try:
            return self._probe(address)
        except TieredStorageError as error:
            return ReadinessReport(is_ready=False, reasons=(str(error),))


def _starting(address: str) -> ReadinessReport:
    error = RetriableError(
        "the process has not answered since its start",
        address=address,
        advice="Wait; if this persists, look at the log of the process",
    )
    return ReadinessReport(is_ready=False, reasons=(str(error),))
