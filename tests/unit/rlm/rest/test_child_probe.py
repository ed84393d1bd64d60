"""The supervisor's requests to a child over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, Event

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rlm.process.readiness import ReadinessReport
from rlm.rest.child_probe import ChildProbe, ChildRun, LastReadiness
from rlm.rest.worker_api import readiness_response
from rsm.segment.errors import RetriableError
from tests.services.waiting import wait_until
from tests.unit.rlm.rest.signed_manager import serving

READY = ReadinessReport(is_ready=True, warnings=("damaged",))
UNREADY = ReadinessReport(is_ready=False, reasons=("no cluster",))


def _readiness(response: Response) -> ReadinessReport:
    app = Starlette(routes=[Route("/readyz", lambda _: response)])
    with serving(app) as address:
        return ChildProbe().readiness(address)


@pytest.mark.parametrize("report", [READY, UNREADY])
def test_readiness_when_a_child_reports_it_then_the_same_report(report: ReadinessReport) -> None:
    assert _readiness(readiness_response(report)) == report


@pytest.mark.parametrize(
    "response",
    [
        PlainTextResponse("Internal Server Error", status_code=500),
        PlainTextResponse("[" * 100_000),
        JSONResponse({"ready": "yes"}),
        JSONResponse([]),
        JSONResponse({"ready": False}, status_code=503),
    ],
)
def test_readiness_when_the_response_has_no_reason_then_not_ready_and_its_status(
    response: Response,
) -> None:
    found = _readiness(response)

    assert not found.is_ready
    assert found.reasons[0] == f"it gave no reason (http_status={response.status_code})"


MANAGER, GATEWAY = ChildRun("manager", 7), ChildRun("gateway", 8)


class Children:
    """Children by address; one that is in `mute` answers after `released` is set."""

    def __init__(self) -> None:
        self.mute: set[str] = set()
        self.released = Event()
        self.answered: list[str] = []

    def readiness(self, address: str) -> ReadinessReport:
        if address in self.mute:
            self.released.wait()
        self.answered.append(address)
        return READY


@pytest.fixture
def children() -> Iterator[Children]:
    found = Children()
    yield found
    found.released.set()


def test_last_readiness_when_a_child_starts_then_not_ready_and_the_others_as_they_answer(
    children: Children,
) -> None:
    children.mute = {"b"}
    last = LastReadiness(children.readiness, most_children=2, patience_s=0.1)

    found = last.of({MANAGER: "b", GATEWAY: "a"})
    wait_until(lambda: "a" in children.answered, deadline_s=10)
    found = last.of({MANAGER: "b", GATEWAY: "a"})

    assert found[GATEWAY] == READY
    assert not found[MANAGER].is_ready
    assert found[MANAGER].reasons[0].startswith("the process has not answered since its start")


def test_last_readiness_when_a_child_that_answered_is_slow_then_its_last_answer(
    children: Children,
) -> None:
    last = LastReadiness(children.readiness, most_children=1, patience_s=0.1)
    wait_until(lambda: last.of({MANAGER: "a"}) == {MANAGER: READY}, deadline_s=10)
    children.mute = {"a"}

    assert last.of({MANAGER: "a"}) == {MANAGER: READY}


def test_last_readiness_when_a_child_restarted_then_the_answer_of_the_run_before_is_forgotten(
    children: Children,
) -> None:
    last = LastReadiness(children.readiness, most_children=2, patience_s=0.1)
    wait_until(lambda: last.of({MANAGER: "a"}) == {MANAGER: READY}, deadline_s=10)
    children.mute = {"a"}
    restarted = ChildRun("manager", 9)

    assert not last.of({restarted: "a"})[restarted].is_ready


def test_last_readiness_when_children_are_asked_then_all_at_once() -> None:
    barrier = Barrier(2)

    def answer_with_the_other(_: str) -> ReadinessReport:
        barrier.wait(timeout=10)
        return READY

    last = LastReadiness(answer_with_the_other, most_children=2, patience_s=20)

    assert last.of({MANAGER: "a", GATEWAY: "b"}) == {MANAGER: READY, GATEWAY: READY}


def test_last_readiness_when_a_child_does_not_answer_then_its_error_until_it_answers() -> None:
    answers = iter([UNREADY, READY])

    def answer(address: str) -> ReadinessReport:
        found = next(answers)
        if found is UNREADY:
            raise RetriableError("process does not answer", address=address)
        return found

    last = LastReadiness(answer, most_children=1, patience_s=20)

    first, second = last.of({MANAGER: "a"}), last.of({MANAGER: "a"})

    assert first[MANAGER].reasons == ("process does not answer (address=a)",)
    assert second[MANAGER] == READY
