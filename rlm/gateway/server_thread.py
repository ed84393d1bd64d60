"""Runs a gateway's server on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future

from rlm.gateway.server import GatewayParts, GatewayServer
from rsm.segment.errors import RetriableError


class ServerThread:
    """`start` and `stop` once each, by one thread; `stop` also without `start`."""

    def __init__(self, parts: GatewayParts, listener: socket.socket) -> None:
        """The socket is taken over: closing the server closes it."""
        self._parts = parts
        self._listener = listener
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="gateway-loop", daemon=True)

    def start(self) -> None:
        """Accept clients. RetriableError if that is not possible."""
        self._thread.start()
        try:
            self._started.result()
        except OSError as error:
            raise RetriableError("clients can't be accepted", reason=error) from error

    @property
    def has_ended(self) -> bool:
        """Whether the loop has come to an end, as it should only do after `stop`."""
        return self._started.done() and not self._thread.is_alive()

    def stop(self, *, timeout_ms: int) -> None:
        """End all connections, and the loop."""
        if self._loop is None or self._ending is None or not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(timeout_ms / 1000)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        server = GatewayServer(self._parts)
        try:
            await server.start(self._listener)
        except OSError as error:
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        await self._ending.wait()
        await server.stop()
