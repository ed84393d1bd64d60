"""Where the manager's API listens, and when."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from rlm.config.values import HostPort
from rlm.rest.api_listener import ApiListener, has_address
from rlm.rest.http_server import HttpServer, bind_listener
from rlm.rest.worker_api import healthy
from rsm.segment.errors import RetriableError
from tests.services import plain_http
from tests.thread_starts import no_thread_starts


def _serve(bound: socket.socket) -> HttpServer:
    return HttpServer(Starlette(routes=[Route("/healthz", healthy)]), bound, name="api")


def _answers(address: HostPort) -> bool:
    answer = plain_http.get(f"http://{address}/healthz")
    return answer.status_code == httpx.codes.OK


def test_listener_when_the_address_becomes_known_after_the_start_then_serves_there() -> None:
    listener = ApiListener()
    listener.start(_serve)
    try:
        address = listener.listen_at("127.0.0.1")

        assert _answers(address)
        assert listener.listen_at("127.0.0.2") == address
    finally:
        listener.stop()


def test_listener_when_the_address_is_known_before_the_start_then_serves_there() -> None:
    listener = ApiListener()
    address = listener.listen_at("127.0.0.1")
    listener.start(_serve)
    try:
        assert _answers(address)
    finally:
        listener.stop()


def test_listener_when_a_socket_is_given_then_no_other_is_bound() -> None:
    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="rest.listener")
    listener = ApiListener(bound)
    listener.start(_serve)
    try:
        address = listener.listen_at("127.0.0.2")

        assert address.host == "127.0.0.1"
        assert _answers(address)
    finally:
        listener.stop()


def test_listener_when_stopped_then_listens_no_more() -> None:
    listener = ApiListener()
    address = listener.listen_at("127.0.0.1")
    listener.stop()

    with pytest.raises(RetriableError):
        listener.listen_at("127.0.0.1")
    with pytest.raises(httpx.ConnectError):
        _answers(address)


def test_listener_when_the_address_cannot_be_bound_then_retriable_without_a_setting() -> None:
    """No host has an address of 192.0.2.0/24."""
    listener = ApiListener()

    with pytest.raises(RetriableError) as raised:
        listener.listen_at("192.0.2.1")

    assert raised.value.context["host"] == "192.0.2.1"
    assert "found" not in raised.value.context
    assert listener.listen_at("127.0.0.1").host == "127.0.0.1"
    listener.stop()


@contextmanager
def moving_listener() -> Iterator[tuple[ApiListener, HostPort]]:
    """Yield a listener that serves, and its address, which its host then loses."""
    lost: set[str] = set()
    listener = ApiListener(has_address=lambda host: host not in lost)
    listener.start(_serve)
    try:
        before = listener.listen_at("127.0.0.1")
        lost.add("127.0.0.1")
        yield listener, before
    finally:
        listener.stop()


def test_listener_when_the_host_has_lost_its_address_then_moves_to_the_new_one() -> None:
    """For example when a DHCP lease ends."""
    with moving_listener() as (listener, before):
        after = listener.listen_at("127.0.0.2")

        assert after.host == "127.0.0.2"
        assert _answers(after)
        with pytest.raises(httpx.ConnectError):
            _answers(before)
        assert listener.listen_at("127.0.0.2") == after


@pytest.mark.parametrize("is_bound_before", [False, True])
def test_listener_when_no_thread_starts_then_retriable_and_the_next_call_serves(
    *, is_bound_before: bool
) -> None:
    listener = ApiListener()
    if is_bound_before:
        listener.listen_at("127.0.0.1")
    with no_thread_starts():
        if is_bound_before:
            with pytest.raises(RetriableError, match="cannot serve the HTTP API"):
                listener.start(_serve)
        else:
            listener.start(_serve)
        with pytest.raises(RetriableError, match="cannot serve the HTTP API"):
            listener.listen_at("127.0.0.1")
    try:
        assert _answers(listener.listen_at("127.0.0.1"))
    finally:
        listener.stop()


def test_listener_when_no_thread_starts_for_the_new_address_then_the_old_one_serves_on() -> None:
    with moving_listener() as (listener, before):
        with no_thread_starts(), pytest.raises(RetriableError):
            listener.listen_at("127.0.0.2")

        assert _answers(before)
        after = listener.listen_at("127.0.0.2")
        assert after.host == "127.0.0.2"
        assert _answers(after)


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.3", True), ("192.0.2.1", False)])
def test_host_when_asked_for_an_address_then_knows_its_own(host: str, *, expected: bool) -> None:
    """No host has an address of 192.0.2.0/24."""
    assert has_address(host) is expected
