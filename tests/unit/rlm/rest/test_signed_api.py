"""Which requests a manager accepts, and which responses a command accepts. Scenario 118."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from uuid import UUID

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message

from rlm.rest import signing
from rlm.rest.signed_api import WINDOW_MS
from rlm.rest.signing import SignedRequest
from rlmm.events.secret import PREVIOUS_VALID_MS
from rsm.segment.errors import CorruptError, RetriableError
from tests import metadata_builder as build
from tests.services import plain_http
from tests.unit.rlm.cli.stated_managers import Cluster, report
from tests.unit.rlm.rest.asgi_client import ask
from tests.unit.rlm.rest.signed_manager import (
    IDENTITY,
    INCARNATION,
    SignedManager,
    client_of,
    registered,
    serving,
)

_PATH = "/v1/partitions?topic=orders"


@pytest.fixture
def manager() -> SignedManager:
    manager = SignedManager()
    manager.set_secret(1)
    manager.view.reports = (report(),)
    return manager


@pytest.fixture
def address(manager: SignedManager) -> Iterator[str]:
    with serving(manager.app) as address:
        yield address


def _headers(
    manager: SignedManager,
    *,
    secret: int = 1,
    time_ms: int | None = None,
    nonce: bytes = b"n" * 16,
    target: UUID = INCARNATION,
    changes: Mapping[str, object] | None = None,
) -> dict[str, str]:
    """Return the headers of a command's GET of _PATH; `changes` are signed, but not sent."""
    now_ms = manager.cluster.metadata.broker_time_ms()
    sent = SignedRequest(
        method="GET",
        path=_PATH.encode(),
        body=b"",
        time_ms=now_ms if time_ms is None else time_ms,
        nonce=nonce,
        target=target,
    )
    signed = replace(sent, **(changes or {}))  # type: ignore[arg-type]  # field names are the tests' own
    return {
        signing.SECRET_ID_HEADER: UUID(int=secret).hex,
        signing.TIME_HEADER: str(sent.time_ms),
        signing.NONCE_HEADER: sent.nonce.hex(),
        signing.TARGET_HEADER: sent.target.hex,
        signing.SIGNATURE_HEADER: signed.signature(build.secret(secret).key),
    }


def test_request_when_signed_by_a_command_then_answered(
    manager: SignedManager, address: str
) -> None:
    with closing(client_of(manager.cluster)) as client:
        rows = client.partitions(registered(address), topic="orders")

    assert [row.topic_id_partition.topic for row in rows] == ["orders"]
    assert manager.refusals == []


@pytest.mark.parametrize("path", ["/v1/partitions", "/v1/cycle", "/metrics", "/", "/v1/none"])
def test_request_when_unsigned_then_refused_and_counted(manager: SignedManager, path: str) -> None:
    answer = ask(manager.app, "GET", path)

    assert (answer.status_code, manager.refusals) == (401, ["unsigned"])
    assert "orders" not in answer.text


def test_health_when_unsigned_then_anybody_may_ask(manager: SignedManager) -> None:
    assert ask(manager.app, "GET", "/healthz").json() == {"healthy": True}


def test_readiness_when_unsigned_then_without_reasons(manager: SignedManager) -> None:
    assert ask(manager.app, "GET", "/readyz").json() == {"ready": True}


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "POST"},
        {"path": b"/v1/partitions"},
        {"path": b"/v1/partitions?topic=other"},
        {"body": b"x"},
        {"time_ms": 1},
        {"nonce": b"m" * 16},
        {"target": UUID(int=9)},
    ],
)
def test_request_when_any_signed_field_was_changed_then_refused(
    manager: SignedManager, changes: dict[str, object]
) -> None:
    headers = _headers(manager, changes=changes)

    answer = ask(manager.app, "GET", _PATH, headers)

    assert (answer.status_code, manager.refusals) == (401, ["wrong_signature"])


def test_request_when_a_body_was_added_to_it_then_refused(manager: SignedManager) -> None:
    answer = ask(manager.app, "GET", _PATH, _headers(manager), content=b"added")

    assert (answer.status_code, manager.refusals) == (401, ["wrong_signature"])


def test_request_when_sent_again_then_refused(manager: SignedManager) -> None:
    app, headers = manager.app, _headers(manager)

    answers = [ask(app, "GET", _PATH, headers).status_code for _ in range(2)]

    assert (answers, manager.refusals) == ([200, 401], ["replayed"])


@pytest.mark.parametrize(
    ("difference_ms", "refusals"),
    [
        (WINDOW_MS, []),
        (-WINDOW_MS, []),
        (WINDOW_MS + 1, ["outside_window"]),
        (-WINDOW_MS - 1, ["outside_window"]),
    ],
)
def test_request_when_the_clocks_differ_then_taken_within_the_window(
    manager: SignedManager, difference_ms: int, refusals: list[str]
) -> None:
    now_ms = manager.cluster.metadata.broker_time_ms()

    ask(manager.app, "GET", _PATH, _headers(manager, time_ms=now_ms + difference_ms))

    assert manager.refusals == refusals


def test_request_when_for_an_earlier_run_then_refused(manager: SignedManager) -> None:
    """A recorded request is invalid for a restarted manager, which has no nonces."""
    answer = ask(manager.app, "GET", _PATH, _headers(manager, target=UUID(int=9)))

    assert (answer.status_code, manager.refusals) == (421, ["wrong_target"])


@pytest.mark.parametrize(
    "header",
    [
        signing.SECRET_ID_HEADER,
        signing.TIME_HEADER,
        signing.NONCE_HEADER,
        signing.TARGET_HEADER,
        signing.SIGNATURE_HEADER,
    ],
)
@pytest.mark.parametrize("value", ["", "x", "é", "9" * 5000])
def test_request_when_a_header_is_malformed_then_refused(
    manager: SignedManager, header: str, value: str
) -> None:
    answer = ask(manager.app, "GET", _PATH, {**_headers(manager), header: value})

    assert 400 <= answer.status_code < 500
    assert len(manager.refusals) == 1


def test_request_when_its_body_is_too_large_then_refused(manager: SignedManager) -> None:
    answer = ask(manager.app, "POST", _PATH, _headers(manager), content=b"x" * 70_000)

    assert (answer.status_code, manager.refusals) == (413, ["body_too_large"])


def test_secret_when_rotated_then_the_old_one_is_valid_for_ten_minutes(
    manager: SignedManager,
) -> None:
    clock = manager.cluster.clock
    manager.set_secret(2, previous=1)
    clock.now_ms += PREVIOUS_VALID_MS - 1
    manager.cluster.register(7, "here:1")  # the brokers' time advances with the topic
    ask(manager.app, "GET", _PATH, _headers(manager))
    during = list(manager.refusals)
    clock.now_ms += 1
    manager.cluster.register(7, "here:1")
    ask(manager.app, "GET", _PATH, _headers(manager))
    ask(manager.app, "GET", _PATH, _headers(manager, secret=2))

    assert (during, manager.refusals) == ([], ["unknown_secret"])


def test_secret_when_there_is_none_then_every_request_is_refused() -> None:
    manager = SignedManager()

    answer = ask(manager.app, "GET", _PATH, _headers(manager))

    assert (answer.status_code, manager.refusals) == (503, ["no_secret"])


def test_client_when_the_manager_has_not_seen_the_rotation_then_signs_with_the_old_secret(
    address: str,
) -> None:
    ahead = SignedManager()
    ahead.set_secret(2, previous=1)

    with closing(client_of(ahead.cluster)) as client:
        assert client.partitions(registered(address))


def test_client_when_another_manager_answers_then_names_both_and_the_setting(
    manager: SignedManager, address: str
) -> None:
    """If all managers register the same loopback port, a command reaches its own host's manager."""
    other = replace(IDENTITY, broker_id=2, incarnation=UUID(int=2))

    with closing(client_of(manager.cluster)) as client, pytest.raises(RetriableError) as raised:
        client.partitions(registered(address, other))

    context = raised.value.context
    assert (context["broker_id"], context["found_broker_id"]) == (2, "1")
    assert context["address"] == address
    assert "rest.listener" in str(context["advice"])


def test_client_when_the_manager_has_restarted_then_says_so(
    manager: SignedManager, address: str
) -> None:
    before = replace(IDENTITY, incarnation=UUID(int=2))

    with (
        closing(client_of(manager.cluster)) as client,
        pytest.raises(RetriableError, match="restarted"),
    ):
        client.partitions(registered(address, before))


def test_client_when_an_impostor_knows_the_identity_but_not_the_secret_then_not_believed(
    manager: SignedManager,
) -> None:
    named = {
        signing.CLUSTER_ID_HEADER: IDENTITY.cluster_id,
        signing.BROKER_ID_HEADER: str(IDENTITY.broker_id),
        signing.INCARNATION_HEADER: IDENTITY.incarnation.hex,
        signing.SIGNATURE_HEADER: "0" * signing.SIGNATURE_CHARACTERS,
    }
    impostor = Starlette(
        routes=[Route("/v1/partitions", lambda _: JSONResponse([], headers=named))]
    )

    with (
        serving(impostor) as address,
        closing(client_of(manager.cluster)) as client,
        pytest.raises(CorruptError, match="not signed"),
    ):
        client.partitions(registered(address))


def test_client_when_the_manager_registered_no_address_then_names_the_setting() -> None:
    with closing(client_of(Cluster())) as client, pytest.raises(RetriableError) as raised:
        client.partitions(registered(""))

    assert "rest.listener" in str(raised.value.context["advice"])


def test_client_when_nobody_listens_then_names_broker_address_and_setting(
    manager: SignedManager,
) -> None:
    with closing(client_of(manager.cluster)) as client, pytest.raises(RetriableError) as raised:
        client.partitions(registered("127.0.0.1:1"))

    context = raised.value.context
    assert (context["broker_id"], context["address"]) == (1, "127.0.0.1:1")
    assert "rest.listener" in str(context["advice"])


def test_answer_when_read_then_its_body_holds_no_secret(
    manager: SignedManager, address: str
) -> None:
    answer = plain_http.get(f"http://{address}{_PATH}", headers=_headers(manager))

    sent = answer.text + str(answer.headers)
    assert answer.status_code == httpx.codes.OK
    assert build.secret(1).key.hex() not in sent
    assert build.secret(1).key.decode() not in sent


def test_request_when_its_headers_are_refused_then_its_body_is_not_awaited(
    manager: SignedManager,
) -> None:
    """A client without the secret occupies no connection."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body is read")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/cycle", "headers": []}
    asyncio.run(manager.app(scope, receive, send))

    assert (sent[0]["status"], manager.refusals) == (401, ["unsigned"])
