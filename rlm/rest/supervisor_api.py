"""Serves the supervisor's HTTP API, which SUPERVISOR_ENDPOINTS lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from rlm.metrics.description import MetricDescription, MetricUnit, any_of
from rlm.process.readiness import ReadinessReport
from rlm.process.supervisor import ChildStatus
from rlm.rest.child_probe import ChildRun, LastReadiness
from rlm.rest.exposition import CONTENT_TYPE, PROCESS_LABEL, Families, merged, render
from rlm.rest.worker_api import (
    HEALTH_ENDPOINT,
    METRICS_ENDPOINT,
    READINESS_ENDPOINT,
    healthy,
    readiness_response,
)
from rsm.segment.errors import TieredStorageError

_METRICS = replace(
    METRICS_ENDPOINT,
    meaning="The metrics of all processes of the host, each with the label `process`.",
)
_HEALTH = replace(HEALTH_ENDPOINT, meaning="Whether the supervisor answers HTTP requests.")
_READINESS = replace(
    READINESS_ENDPOINT,
    meaning="Whether all processes of the host do all of their work. Each reason begins with the "
    "name of its process. If a process does not answer within 0.2 s, its last known readiness "
    "counts.",
)
_PROCESS = any_of(
    PROCESS_LABEL, "`manager`, `gateway`, or `gateway-N` if there are several gateway workers"
)
_UP = MetricDescription(
    name="rlm_process_up",
    kind="gauge",
    unit=MetricUnit.FLAG,
    labels=(_PROCESS,),
    meaning="1 while the process runs, else 0.",
)
_RESTARTS = MetricDescription(
    name="rlm_process_restarts_total",
    kind="counter",
    unit=MetricUnit.COUNT,
    labels=(_PROCESS,),
    meaning="Attempts to start the process, except the first.",
)
SUPERVISOR_METRICS = (_UP, _RESTARTS)
SUPERVISOR_ENDPOINTS = (_METRICS, _HEALTH, _READINESS)


class Probe(Protocol):
    """Probes a process; see rlm.rest.child_probe."""

    def metrics(self, address: str) -> tuple[Metric, ...]:
        """Fetch a child's metrics. Raises TieredStorageError."""

    def readiness(self, address: str) -> ReadinessReport:
        """Fetch whether a child is ready. Raises TieredStorageError."""


def supervisor_api(statuses: Callable[[], Sequence[ChildStatus]], probe: Probe) -> Starlette:
    """Compose the application; `statuses` is thread-safe, and always returns the same children."""
    last = LastReadiness(probe.readiness, most_children=len(statuses()))

    def metrics(_: Request) -> Response:
        current = statuses()
        by_process = {status.spec.name: _metrics_of(status, probe) for status in current}
        families = [*_own_families(current), *merged(by_process).collect()]
        return Response(render(Families(families)), media_type=CONTENT_TYPE)

    def ready(_: Request) -> Response:
        found = _readiness_of(statuses(), last)
        return readiness_response(
            ReadinessReport(
                is_ready=all(each.is_ready for each in found),
                reasons=tuple(reason for each in found for reason in each.reasons),
                warnings=tuple(warning for each in found for warning in each.warnings),
            )
        )

    return Starlette(
        routes=[
            _METRICS.route(metrics),
            _HEALTH.route(healthy),
            _READINESS.route(ready),
        ]
    )


def _own_families(statuses: Iterable[ChildStatus]) -> tuple[Metric, ...]:
    up = GaugeMetricFamily(_UP.name, _UP.help, labels=_UP.label_names)
    restarts = CounterMetricFamily(
        _RESTARTS.name.removesuffix("_total"),
        _RESTARTS.help,
        labels=_RESTARTS.label_names,
    )
    for status in statuses:
        name = [status.spec.name]
        up.add_metric(name, 0 if status.pid is None else 1)
        restarts.add_metric(name, max(0, status.start_count - 1))
    return up, restarts


def _metrics_of(status: ChildStatus, probe: Probe) -> tuple[Metric, ...]:
    """Return a child's metrics; none if it does not run or its metrics cannot be fetched."""
    if status.pid is None or status.spec.http_address is None:
        return ()
    try:
        return probe.metrics(status.spec.http_address)
    except TieredStorageError:
        return ()


def _readiness_of(
    statuses: Iterable[ChildStatus], last: LastReadiness
) -> Sequence[ReadinessReport]:
    """Return the readiness of each child; each text begins with the child's name."""
    runs = {each.spec.name: each for each in statuses}
    asked = {
        ChildRun(name, each.pid): each.spec.http_address
        for name, each in runs.items()
        if each.pid is not None and each.spec.http_address is not None
    }
    responses = {run.name: report for run, report in last.of(asked).items()}
    return [
        _named(name, responses.get(name) or _readiness_without_response(each))
        for name, each in runs.items()
    ]


def _readiness_without_response(status: ChildStatus) -> ReadinessReport:
    if status.pid is not None:
        return ReadinessReport(is_ready=True)
    why = f": {status.failure}" if status.failure else ""
    return ReadinessReport(is_ready=False, reasons=(f"not running{why}",))


def _named(name: str, found: ReadinessReport) -> ReadinessReport:
    return ReadinessReport(
        is_ready=found.is_ready,
        reasons=tuple(f"{name}: {reason}" for reason in found.reasons),
        warnings=tuple(f"{name}: {warning}" for warning in found.warnings),
    )
