"""A server that is slow on purpose does not delay a command."""

from __future__ import annotations

import errno
import gzip
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Event, Thread

import httpx
import pytest

from rlm.rest.http_exchange import HttpExchange, reason_of
from rsm.segment.errors import CorruptError, RetriableError

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n"
_BODY = b"[" + 18 * b" " + b"]"


@contextmanager
def _trickling(at_once: bytes, then: bytes) -> Iterator[httpx.URL]:
    """Serve one request, and send `then` byte by byte, each within the read timeout."""
    with _serving(at_once, then, []) as url:
        yield url


@contextmanager
def _serving(at_once: bytes, then: bytes, requests: list[bytes]) -> Iterator[httpx.URL]:
    left = Event()

    def serve(listener: socket.socket) -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            requests.append(connection.recv(4096))
            connection.sendall(at_once)
            for byte in then:
                if left.wait(0.05):
                    return
                connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, args=(listener,))
        thread.start()
        yield httpx.URL(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        left.set()
        thread.join()


def _exchange(response_s: float) -> closing[HttpExchange]:
    return closing(HttpExchange(response_s=response_s))


@pytest.mark.parametrize(
    ("at_once", "then"), [(b"", _HEAD + _BODY), (_HEAD, _BODY)], ids=["head", "body"]
)
def test_answer_when_it_comes_byte_by_byte_then_given_up(at_once: bytes, then: bytes) -> None:
    with (
        _trickling(at_once, then) as url,
        _exchange(0.2) as exchange,
        pytest.raises(RetriableError, match=r"no complete response within 0\.2 s"),
    ):
        exchange.send("GET", url, {})


def test_answer_when_it_is_whole_in_time_then_returned() -> None:
    with _trickling(_HEAD, _BODY) as url, _exchange(60) as exchange:
        answer = exchange.send("GET", url, {})

    assert (answer.status, answer.body) == (200, _BODY)


def _encoded(encoding: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "identity, gzip", "br"])
def test_answer_when_it_is_compressed_then_corrupt_and_not_decoded(encoding: str) -> None:
    """A few KB of a twice compressed body decode to gigabytes."""
    body = gzip.compress(gzip.compress(_BODY))

    with (
        _trickling(_encoded(encoding, body), b"") as url,
        _exchange(60) as exchange,
        pytest.raises(CorruptError, match="cannot read the response: it is compressed"),
    ):
        exchange.send("GET", url, {})


def test_answer_when_it_says_that_it_is_not_compressed_then_returned() -> None:
    requests: list[bytes] = []

    with _serving(_encoded("identity", _BODY), b"", requests) as url, _exchange(60) as exchange:
        answer = exchange.send("GET", url, {})

    assert answer.body == _BODY
    assert b"accept-encoding: identity\r\n" in requests[0].lower()


def test_answer_when_no_address_is_registered_then_says_so() -> None:
    with _exchange(60) as exchange, pytest.raises(RetriableError, match="has no address"):
        exchange.read("", "/metrics")


def test_answer_when_none_comes_then_says_so() -> None:
    """The reason must not be the name of a class."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        closing(HttpExchange(read_s=0.1)) as exchange,
        pytest.raises(RetriableError, match=r"^no response within 0\.1 s$"),
    ):
        exchange.send("GET", httpx.URL(f"http://127.0.0.1:{silent.getsockname()[1]}/"), {})


def test_answer_when_the_connection_is_not_taken_then_says_so() -> None:
    """For example, a firewall drops the packets."""
    with ExitStack() as opened:
        full = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # more than its backlog takes
            waiting = opened.enter_context(closing(socket.socket()))
            waiting.settimeout(0)
            waiting.connect_ex(full.getsockname())
        exchange = opened.enter_context(closing(HttpExchange(read_s=0.1)))
        url = httpx.URL(f"http://127.0.0.1:{full.getsockname()[1]}/")

        with pytest.raises(RetriableError, match=r"^no connection within 0\.1 s$"):
            exchange.send("GET", url, {})


def test_reason_when_libraries_wrap_what_the_system_said_then_that() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 1)")
    group = ExceptionGroup("attempts", [OSError(errno.EHOSTUNREACH, "no"), refused])
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = OSError("All connection attempts failed")
    error.__cause__.__context__ = group

    assert reason_of(error) == "Connection refused"
    assert reason_of(httpx.RemoteProtocolError("left")) == "left"
