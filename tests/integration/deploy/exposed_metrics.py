"""Serves /metrics of a host: every metric of `rlm`, with changing values.

The supervisor's own application serves them. Its two processes have the same metrics: gauges are 0
in one and 1 in the other, but the copy lags rise. Counters grow by 10 a second. A third process
is down, and a fourth hangs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from rlm.gateway.app.metrics import gateway_descriptions
from rlm.metrics.description import MetricDescription
from rlm.metrics.metadata import metadata_descriptions
from rlm.metrics.metrics import Metrics
from rlm.process.readiness import ReadinessReport
from rlm.process.supervisor import ChildStatus
from rlm.rest.supervisor_api import supervisor_api
from rsm.segment.errors import RetriableError
from tests.unit.rlm.rest.asgi_client import get
from tests.unit.rlm.rest.test_supervisor_api import status_of

# Label values that rules and dashboards select; other labels have one value.
_VALUES = {
    "kind": ("missing",),
    "operation": ("put_object", "get_object"),
    "reason": ("share_groups_hidden", "diverged", "lineage_conflict", "corrupt"),
    "result": ("ok", "failed"),
}
_GROWTH_PER_SECOND = 10.0
_GAUGES = {"manager": 0.0, "gateway": 1.0}
_RISING = {  # the value for each count of a counter
    "kafka_server_remote_copy_lag_bytes": 1e6,
    "kafka_server_remote_copy_lag_segments": 1.0,
    "rlm_stream_merge_waiting_segments": 1e4,
}


def descriptions() -> tuple[MetricDescription, ...]:
    """Return all metrics of managers and gateways."""
    of_manager = Metrics(CollectorRegistry()).descriptions()
    return (*of_manager, *metadata_descriptions(), *gateway_descriptions())


class _Processes:
    """Answers the supervisor's requests to its processes, by address."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def metrics(self, address: str) -> tuple[Metric, ...]:
        if address not in _GAUGES:
            raise RetriableError("process does not answer", address=address)
        counted, gauge = self._counted(), _GAUGES[address]
        return tuple(_family(each, counted, gauge) for each in descriptions())

    def readiness(self, address: str) -> ReadinessReport:
        return ReadinessReport(is_ready=True)

    def statuses(self) -> tuple[ChildStatus, ...]:
        answering = (status_of(each, start_count=int(self._counted())) for each in _GAUGES)
        return (*answering, status_of("gateway-2", pid=None), status_of("gateway-3"))

    def _counted(self) -> float:
        return (1 + time.monotonic() - self._started_s) * _GROWTH_PER_SECOND


@contextmanager
def exposed_metrics() -> Iterator[str]:
    """Serve the metrics until the block ends; yield the address as host:port."""
    processes = _Processes()
    app = supervisor_api(processes.statuses, processes)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = get(app, "/metrics")
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["content-type"])
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep the output of the tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _family(described: MetricDescription, counted: float, gauge: float) -> Metric:
    name = described.name.removesuffix("_total")
    family = Metric(name, described.meaning, described.kind)
    for values in product(*(_VALUES.get(label, ("x",)) for label in described.label_names)):
        labels = dict(zip(described.label_names, values, strict=True))
        match described.kind:
            case "counter":
                family.add_sample(f"{name}_total", labels, counted)
            case "gauge":
                family.add_sample(name, labels, gauge + counted * _RISING.get(name, 0.0))
            case "histogram":
                for bound in ("0.1", "1.0", "+Inf"):
                    family.add_sample(f"{name}_bucket", labels | {"le": bound}, counted)
                family.add_sample(f"{name}_count", labels, counted)
                family.add_sample(f"{name}_sum", labels, counted)
            case "summary":
                family.add_sample(f"{name}_count", labels, counted)
                family.add_sample(f"{name}_sum", labels, counted)
            case other:
                raise AssertionError(other)
    return family
