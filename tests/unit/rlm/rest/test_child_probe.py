"""The supervisor's requests to a child over HTTP."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rlm.process.readiness import ReadinessReport
from rlm.rest.child_probe import ChildProbe
from rlm.rest.worker_api import readiness_response
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
    assert found.reasons[0].startswith(f"HTTP status {response.status_code}")
