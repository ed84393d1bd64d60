"""Runs a gateway's server on an event loop in its own thread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.listener.server import GatewayParts, GatewayServer
from rsm.segment.errors import RetriableError

_OPEN_S = 10.0
_STOP_MS = 6_000


class ServerThread:
    """Represents the thread of a server. Call its methods from one thread at a time.

    Call `start` at most once. `stop` is idempotent, and `start` need not have been called.
    """

    def __init__(self, *, open_timeout_s: float = _OPEN_S) -> None:
        """`open_timeout_s` limits the start of the loop, and the opening of each endpoint."""
        self._open_timeout_s = open_timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: GatewayServer | None = None
        self._ending: asyncio.Event | None = None
        self._endpoints_before: list[Endpoint] = []
        self._started: Future[None] = Future()
        self._thread: threading.Thread | None = None

    def start(self, parts: GatewayParts) -> None:
        """Start the thread and open the endpoints. On failure, stop and raise RetriableError."""
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(parts)), name="gateway-loop", daemon=True
        )
        self._thread.start()
        try:
            self._wait(self._started)
            while self._endpoints_before:
                self.open(self._endpoints_before.pop(0))
        except RetriableError:
            self.stop(timeout_ms=_STOP_MS)
            raise

    def open(self, endpoint: Endpoint) -> None:
        """Accept clients at an endpoint, and own its socket.

        Before `start`, only registers the endpoint, which `start` then opens. Raises RetriableError
        if the endpoint cannot accept clients. The socket is then closed; if the loop has begun to
        open the endpoint, the loop closes it later.
        """
        if self._loop is None or self._server is None:
            self._endpoints_before.append(endpoint)
            return
        opened: Future[None] = Future()
        asyncio.run_coroutine_threadsafe(_open(self._server, endpoint, opened), self._loop)
        try:
            self._wait(opened)
        except RetriableError:
            if opened.cancel():  # The loop has not begun to open the endpoint, and never will.
                endpoint.listener.close()
            else:
                opened.add_done_callback(lambda _: self.close(endpoint))
            raise

    def close(self, endpoint: Endpoint) -> None:
        """Stop accepting clients at an endpoint; its open connections continue."""
        if self._loop is None or self._server is None:
            self._endpoints_before.remove(endpoint)
            endpoint.listener.close()
        else:
            self._loop.call_soon_threadsafe(self._server.close, endpoint)

    @property
    def has_ended(self) -> bool:
        """Return whether the loop has ended; that is a failure before `stop`. Thread-safe."""
        return self._thread is not None and self._started.done() and not self._thread.is_alive()

    def stop(self, *, timeout_ms: int) -> None:
        """Close all endpoints and connections, then end the loop; wait at most `timeout_ms`."""
        for endpoint in self._endpoints_before:
            endpoint.listener.close()
        if self._thread is None or self._loop is None or self._ending is None or self.has_ended:
            return
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(timeout_ms / 1000)

    def _wait(self, started: Future[None]) -> None:
        try:
            started.result(self._open_timeout_s)
        except (OSError, FutureTimeoutError) as error:
            raise RetriableError("cannot accept clients", reason=error) from error

    async def _serve(self, parts: GatewayParts) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        self._server = GatewayServer(parts)
        self._server.start()
        self._started.set_result(None)
        await self._ending.wait()
        await self._server.stop()


async def _open(server: GatewayServer, endpoint: Endpoint, opened: Future[None]) -> None:
    """Open the endpoint, unless the caller has canceled `opened`."""
    if not opened.set_running_or_notify_cancel():
        return
    try:
        await server.open(endpoint)
    except asyncio.CancelledError:
        opened.set_exception(RetriableError("cannot accept clients: the event loop has ended"))
        raise
    except BaseException as error:  # noqa: BLE001 - the caller gets it
        opened.set_exception(error)
    else:
        opened.set_result(None)
