from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, Metric

from rlm.process.child import ChildSpec
from rlm.process.readiness import ReadinessReport
from rlm.process.supervisor import ChildStatus
from rlm.rest.supervisor_api import supervisor_api
from rsm.segment.errors import RetriableError
from tests.unit.rlm.rest.asgi_client import get


class FakeProbe:
    """Children by their address; one that is not named does not answer."""

    def __init__(self, *warnings: str, **reasons: tuple[str, ...]) -> None:
        self._warnings = warnings
        self._reasons = reasons

    def metrics(self, address: str) -> tuple[Metric, ...]:
        self.readiness(address)
        family = CounterMetricFamily("copied", "Copies.", labels=["topic"])
        family.add_metric(["orders"], len(address))
        return (family,)

    def readiness(self, address: str) -> ReadinessReport:
        if address not in self._reasons:
            raise RetriableError("process does not answer", address=address)
        reasons = self._reasons[address]
        return ReadinessReport(is_ready=not reasons, reasons=reasons, warnings=self._warnings)


def status_of(
    name: str, *, pid: int | None = 1, start_count: int = 1, failure: str = ""
) -> ChildStatus:
    spec = ChildSpec(name=name, command=(), http_address=name)
    return ChildStatus(spec=spec, pid=pid, start_count=start_count, failure=failure)


def test_metrics_when_two_processes_answer_then_one_family_with_their_labels() -> None:
    statuses = (status_of("manager", start_count=3), status_of("gateway"), status_of("mute"))
    app = supervisor_api(lambda: statuses, FakeProbe(manager=(), gateway=()))

    lines = get(app, "/metrics").text.splitlines()

    assert lines.count("# TYPE copied_total counter") == 1
    assert 'copied_total{process="manager",topic="orders"} 7.0' in lines
    assert 'copied_total{process="gateway",topic="orders"} 7.0' in lines
    assert 'rlm_process_up{process="mute"} 1.0' in lines
    assert 'rlm_process_restarts_total{process="manager"} 2.0' in lines


def test_readyz_when_all_children_are_ready_then_200() -> None:
    app = supervisor_api(lambda: (status_of("manager"),), FakeProbe(manager=()))

    assert get(app, "/readyz").status_code == 200


def test_readyz_when_a_child_warns_then_200_and_the_warning_with_its_name() -> None:
    app = supervisor_api(lambda: (status_of("manager"),), FakeProbe("damaged", manager=()))

    response = get(app, "/readyz")

    assert response.status_code == 200
    assert response.json()["warnings"] == ["manager: damaged"]


def test_readyz_when_children_are_not_ready_then_503_and_every_reason() -> None:
    statuses = (status_of("manager"), status_of("gateway", pid=None), status_of("mute"))
    app = supervisor_api(lambda: statuses, FakeProbe(manager=("no cluster",)))

    response = get(app, "/readyz")

    assert response.status_code == 503
    assert response.json()["reasons"] == [
        "manager: no cluster",
        "gateway: not running",
        "mute: process does not answer (address=mute)",
    ]


def test_readyz_when_a_child_cannot_restart_then_503_and_why() -> None:
    statuses = (status_of("manager", pid=None, failure="it ended with exit code 1"),)
    app = supervisor_api(lambda: statuses, FakeProbe())

    response = get(app, "/readyz")

    assert response.status_code == 503
    assert response.json()["reasons"] == ["manager: not running: it ended with exit code 1"]
