"""Answers of managers up to 0.2.0, whose fields had other names."""

from __future__ import annotations

from contextlib import closing

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.unit.rlm.cli.stated_managers import Cluster
from tests.unit.rlm.rest.signed_manager import serving

_REASON = {"reason": "not_stored"}


def test_partitions_when_an_earlier_manager_answers_then_have_the_names_of_now() -> None:
    row = {"topic": "a", "copy_held": _REASON, "trim_held": _REASON, "expiry_held": None}

    with serving(_answering([row])) as address, closing(Cluster().client()) as client:
        (found,) = client.partitions(Cluster().manager(1, address))

    assert found == {
        "topic": "a",
        "copy_blocked": _REASON,
        "trim_blocked": _REASON,
        "expiry_blocked": None,
    }


def test_explanation_when_an_earlier_manager_answers_then_has_the_names_of_now() -> None:
    answer = {"offset": 5, "place": "both"}

    with serving(_answering(answer)) as address, closing(Cluster().client()) as client:
        found = client.explanation(Cluster().manager(1, address), "a", 1, 5)

    assert found == {"offset": 5, "location": "both"}


def _answering(answer: object) -> Starlette:
    def respond(_: Request) -> Response:
        return JSONResponse(answer)

    names = ("partitions", "explanation")
    return Starlette(routes=[Route(f"/v1/{name}", respond) for name in names])
