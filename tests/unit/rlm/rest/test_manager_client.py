from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rlm.config.values import HostPort
from rlm.rest.http_server import HttpServer, bind_listener, local_address
from rsm.segment.errors import RetriableError
from tests.unit.rlm.cli.stated_managers import Cluster


@pytest.fixture
def refusing_address() -> Iterator[str]:
    """Where every request is refused."""

    def refuse(_: Request) -> Response:
        return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)

    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="test")
    server = HttpServer(Starlette(routes=[Route("/v1/partitions", refuse)]), bound, name="refuses")
    with closing(bound):
        server.start()
        yield str(local_address(bound))
        server.stop()


def test_partitions_when_the_manager_refuses_then_the_error_names_the_status_and_no_link(
    refusing_address: str,
) -> None:
    with closing(Cluster().client()) as client, pytest.raises(RetriableError) as raised:
        client.partitions(Cluster().manager(1, refusing_address))

    assert raised.value.context["http_status"] == HTTPStatus.SERVICE_UNAVAILABLE
    assert raised.value.context["request"] == "GET /v1/partitions"
    assert "http" not in str(raised.value).replace("http_status", "")
