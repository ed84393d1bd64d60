"""An endpoint that the loop does not open in time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest

from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.listener.server import ServerLimits
from rlm.gateway.listener.server_thread import ServerThread
from rsm.segment.errors import RetriableError
from tests.services.waiting import wait_until
from tests.unit.rlm.gateway.relay_world import gateway_parts

_LOOPBACK = "127.0.0.1"
_DEADLINE_S = 30.0
_STOP_MS = 10_000


class BlockedLoop:
    """Blocks the loop in its next background task, once `blocks` is set."""

    def __init__(self) -> None:
        self.blocks = threading.Event()
        self.is_blocked = threading.Event()
        self.released = threading.Event()

    def is_under_memory_pressure(self) -> bool:
        if self.blocks.is_set():
            self.is_blocked.set()
            self.released.wait(_DEADLINE_S)
        return False


class BlockingSocket(socket.socket):
    """Blocks the loop while it opens the endpoint of this socket."""

    released: threading.Event

    def setsockopt(self, *options: object) -> None:
        self.released.wait(_DEADLINE_S)
        super().setsockopt(*options)  # type: ignore[call-overload]  # one of its forms


@contextmanager
def started(loop: BlockedLoop) -> Iterator[ServerThread]:
    server = ServerThread(open_timeout_s=0.5)
    with ThreadPoolExecutor(1) as pool:
        parts = replace(
            gateway_parts(pool),
            is_under_memory_pressure=loop.is_under_memory_pressure,
            limits=ServerLimits(pressure_timeout_ms=40),
        )
        server.start(parts)
        try:
            yield server
        finally:
            loop.released.set()
            server.stop(timeout_ms=_STOP_MS)
            assert server.has_ended


def _endpoint(listener: socket.socket) -> Endpoint:
    return Endpoint(name="broker-1", listener=listener, upstreams=lambda: ())


def _accepts(port: int) -> bool:
    """Return whether the server accepts a client, which it then disconnects: it has no broker."""
    try:
        client = socket.create_connection((_LOOPBACK, port), timeout=_DEADLINE_S)
    except ConnectionRefusedError:
        return False
    with closing(client), suppress(ConnectionResetError):
        assert client.recv(1) == b""
    return True


def test_open_when_the_loop_is_blocked_then_the_port_is_free_and_stays_closed() -> None:
    loop = BlockedLoop()
    listener = socket.create_server((_LOOPBACK, 0))
    port = listener.getsockname()[1]
    with started(loop) as server:
        loop.blocks.set()
        assert loop.is_blocked.wait(_DEADLINE_S)

        with pytest.raises(RetriableError, match="cannot accept clients"):
            server.open(_endpoint(listener))

        with closing(socket.create_server((_LOOPBACK, port))) as again:
            loop.blocks.clear()
            loop.released.set()
            server.open(_endpoint(socket.create_server((_LOOPBACK, 0))))
            assert again.fileno() >= 0
        assert not _accepts(port)


def test_open_when_it_ends_after_its_timeout_then_the_loop_closes_the_endpoint() -> None:
    with (
        started(BlockedLoop()) as server,
        closing(BlockingSocket(socket.AF_INET, socket.SOCK_STREAM)) as listener,
    ):
        listener.bind((_LOOPBACK, 0))
        listener.listen()
        port = listener.getsockname()[1]
        listener.released = threading.Event()

        with pytest.raises(RetriableError, match="cannot accept clients"):
            server.open(_endpoint(listener))

        listener.released.set()
        wait_until(lambda: listener.fileno() < 0, describe="a closed socket")
        server.open(_endpoint(socket.create_server((_LOOPBACK, port))))
        assert _accepts(port)
