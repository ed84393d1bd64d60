"""Connections that send nothing, or half of a request, do not keep others out."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rlm.config.values import HostPort
from rlm.rest.http_server import HttpServer, bind_listener, bound_address, listen_error
from rlm.rest.timed_protocol import ConnectionLimits
from rsm.segment.errors import HostNotReadyError
from tests.services import plain_http

_ADMITTED = 64
_QUICK = ConnectionLimits(request_s=0.2, response_s=0.2)
_PATIENCE_S = 20
_GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Return the body of the request, once all of it has arrived."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(body)(scope, receive, send)


class _Large:
    """A response too large for a socket's buffers; `ended` is set when the client has left."""

    def __init__(self) -> None:
        self.ended = Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for is_last in (False, True):
            body = bytes(64 << 20)
            await send({"type": "http.response.body", "body": body, "more_body": not is_last})
        self.ended.set()


@contextmanager
def _served(limits: ConnectionLimits, app: ASGIApp = _echo) -> Iterator[HostPort]:
    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="test")
    address = bound_address(bound)
    server = HttpServer(app, bound, name="served", limits=limits)
    server.start()
    try:
        yield address
    finally:
        server.stop()


def _connected(address: HostPort) -> socket.socket:
    return socket.create_connection((address.host, address.port), _PATIENCE_S)


def _rest(connection: socket.socket) -> bytes:
    """Return the bytes until the server ends the connection; TimeoutError if it does not."""
    received = bytearray()
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return bytes(received)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf",
        _GET + b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf",
    ],
    ids=["nothing", "half a head", "half a body", "half of a second request"],
)
def test_connection_when_no_whole_request_comes_then_ended(sent: bytes) -> None:
    with _served(_QUICK) as address, _connected(address) as connection:
        connection.sendall(sent)

        assert _rest(connection).count(b"200 OK") == sent.count(_GET)


def test_connection_when_the_answer_is_not_taken_then_ended() -> None:
    app = _Large()
    with _served(_QUICK, app) as address, _connected(address) as connection:
        connection.sendall(_GET)

        assert app.ended.wait(_PATIENCE_S)


def test_request_when_silent_connections_took_all_places_then_answered_once_they_are_ended() -> (
    None
):
    with _served(_QUICK) as address, ExitStack() as opened:
        silent = [opened.enter_context(_connected(address)) for _ in range(_ADMITTED)]
        for each in silent:
            _rest(each)

        answer = plain_http.get(f"http://{address}/")

    assert answer.status_code == httpx.codes.OK


def test_request_when_sent_in_parts_within_its_time_then_answered() -> None:
    with _served(ConnectionLimits()) as address, _connected(address) as connection:
        for part in (_GET[:7], _GET[7:-1], _GET[-1:]):
            connection.sendall(part)

        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 OK")


def test_bind_listener_when_the_port_is_occupied_then_it_may_be_free_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(HostNotReadyError, match="rlm can start once the address is free"):
            bind_listener(HostPort(host="127.0.0.1", port=port), key="test")


def test_bind_listener_when_the_user_may_not_use_the_port_then_the_setting_is_wrong() -> None:
    error = listen_error(
        PermissionError(errno.EACCES, "Permission denied"),
        HostPort(host="127.0.0.1", port=1),
        key="test",
    )

    assert not isinstance(error, HostNotReadyError)
    assert "rlm starts" not in str(error)
