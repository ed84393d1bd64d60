from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rlm.config.values import HostPort
from rlm.rest import signing
from rlm.rest.http_server import HttpServer, bind_listener, local_address
from rlm.rest.refusals import RequestRefusal
from rsm.segment.errors import CorruptError, RetriableError
from tests.unit.rlm.cli.stated_managers import Cluster, report
from tests.unit.rlm.rest.asgi_client import ask
from tests.unit.rlm.rest.signed_manager import (
    IDENTITY,
    SignedManager,
    client_of,
    registered,
    serving,
)


@pytest.fixture
def refusing_address() -> Iterator[str]:
    """An address where every request is refused."""

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


@pytest.mark.parametrize(
    "address",
    [
        "a..b:1",
        f"{'a' * 64}:1",
        "xn--\u0080:1",
        "127.0.0.1:99999",
        "127.0.0.1:-1",
        "[::1",
        "\x00:1",
        "a b:1",
        "@:1",
        "/",
        ":",
    ],
)
def test_partitions_when_the_registered_address_is_garbage_then_retriable_and_named(
    address: str,
) -> None:
    """Anyone who may write the topic can register anything."""
    with closing(Cluster().client()) as client, pytest.raises(RetriableError) as raised:
        client.partitions(Cluster().manager(1, address))

    assert raised.value.context["address"] == address


@pytest.mark.parametrize("body", ["", "{", "[1]", "[" * 100_000, "{}"])
def test_partitions_when_the_answer_is_malformed_then_corrupt(body: str) -> None:
    app = Starlette(routes=[Route("/v1/partitions", lambda _: PlainTextResponse(body))])

    with (
        serving(app) as address,
        closing(Cluster().client()) as client,
        pytest.raises(CorruptError, match="response: it is malformed"),
    ):
        client.partitions(Cluster().manager(1, address))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"partition": "0"}, "[0].partition"),
        ({"lag_bytes": 1 << 63}, "[0].lag_bytes"),
        ({"copy_blocked": {"reason": ["a"]}}, "[0].copy_blocked.reason"),
    ],
)
def test_partitions_when_a_field_is_of_a_wrong_type_then_names_it_and_the_manager(
    changes: dict[str, object], field: str
) -> None:
    row = {**report().to_json(), **changes}
    app = Starlette(routes=[Route("/v1/partitions", lambda _: JSONResponse([row]))])

    with (
        serving(app) as address,
        closing(Cluster().client()) as client,
        pytest.raises(CorruptError, match="response: it is malformed") as raised,
    ):
        client.partitions(Cluster().manager(3, address))

    context = raised.value.context
    assert (context["broker_id"], context["address"]) == (3, address)
    assert context["field"] == field


def test_partitions_when_the_answer_names_no_manager_then_says_what_that_may_be(
    refusing_address: str,
) -> None:
    """A manager with too many connections also answers like that."""
    manager = SignedManager()
    manager.set_secret(1)

    with closing(client_of(manager.cluster)) as client, pytest.raises(RetriableError) as raised:
        client.partitions(registered(refusing_address))

    assert "too many connections" in raised.value.message
    assert raised.value.context["http_status"] == HTTPStatus.SERVICE_UNAVAILABLE


def _refusing(header: str) -> Starlette:
    """Serve the manager of IDENTITY, which refuses every request for this reason."""
    named = {
        signing.CLUSTER_ID_HEADER: IDENTITY.cluster_id,
        signing.BROKER_ID_HEADER: str(IDENTITY.broker_id),
        signing.INCARNATION_HEADER: IDENTITY.incarnation.hex,
        signing.REFUSAL_HEADER: header,
    }
    refusal = PlainTextResponse("", status_code=HTTPStatus.UNAUTHORIZED, headers=named)
    return Starlette(routes=[Route("/v1/partitions", lambda _: refusal)])


def _refused_by(header: str) -> RetriableError:
    manager = SignedManager()
    manager.set_secret(1)
    with (
        serving(_refusing(header)) as address,
        closing(client_of(manager.cluster)) as client,
        pytest.raises(RetriableError, match="refused the request") as raised,
    ):
        client.partitions(registered(address))
    return raised.value


@pytest.mark.parametrize("refusal", RequestRefusal)
def test_partitions_when_refused_then_the_reason_as_the_operations_page_names_it(
    refusal: RequestRefusal,
) -> None:
    """Each reason of the page must be printed with its name."""
    context = _refused_by(refusal.value).context

    assert str(context["reason"]).startswith(f"{refusal.value}: ")
    assert context["advice"]


def test_partitions_when_refused_for_a_reason_of_a_newer_version_then_that_is_shown() -> None:
    assert str(_refused_by("too_early").context["reason"]).startswith("too_early: ")


def test_partitions_when_the_reason_is_no_name_then_not_printed() -> None:
    """Anybody may answer at the address, so no text of the answer reaches the terminal."""
    assert str(_refused_by("\x7f[31m").context["reason"]).startswith("unknown: ")


@pytest.mark.parametrize(
    ("address", "reason"),
    [("127.0.0.1:1", "Connection refused"), ("no-such-host.invalid:1", "not known")],
)
def test_partitions_when_nobody_listens_then_the_systems_reason(address: str, reason: str) -> None:
    """The reason must be the system's, not `All connection attempts failed`."""
    with closing(Cluster().client()) as client, pytest.raises(RetriableError) as raised:
        client.partitions(Cluster().manager(1, address))

    assert reason in str(raised.value.context["reason"])


def test_logs_when_asked_for_then_only_a_signed_request_gets_them() -> None:
    manager = SignedManager(logs=lambda: b"==> manager.log <==\nstarted\n")
    manager.set_secret(1)

    with serving(manager.app) as address, closing(client_of(manager.cluster)) as client:
        found = client.logs(registered(address))

    assert found == b"==> manager.log <==\nstarted\n"
    assert ask(manager.app, "GET", "/v1/logs").status_code == HTTPStatus.UNAUTHORIZED
