"""Owns the listening socket of the manager's HTTP API.

If `rest.listener` is set, the socket is bound at the start of the process. Otherwise it is bound
later, to this host's address in the network of its broker, because other hosts reach the broker
through that network, too. It listens on no other network. If the host loses that address, the
socket moves to another one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from rlm.config.values import HostPort
from rlm.rest.http_server import HttpServer, bind_listener, bound_address
from rsm.segment.errors import InvalidConfigError, RetriableError

REST_LISTENER_KEY = "rest.listener"
_ANY_PORT = 0


def has_address(host: str) -> bool:
    """Return whether this host has the IP address now: whether a socket can be bound to it."""
    try:
        bind_listener(HostPort(host=host, port=_ANY_PORT), key=REST_LISTENER_KEY).close()
    except InvalidConfigError:
        return False
    return True


class ApiListener:
    """Represents one listening socket and, once it is bound, its server. Thread-safe."""

    def __init__(
        self,
        bound: socket.socket | None = None,
        *,
        has_address: Callable[[str], bool] = has_address,
    ) -> None:
        """Own `bound` from now on; if None, `listen_at` binds a socket.

        `has_address` returns whether this host has the given IP address now.
        """
        self._bound = bound
        self._may_move = bound is None
        self._has_address = has_address
        self._serve: Callable[[socket.socket], HttpServer] | None = None
        self._server: HttpServer | None = None
        self._is_stopped = False
        self._lock = Lock()

    def start(self, serve: Callable[[socket.socket], HttpServer]) -> None:
        """Start the server that `serve` creates for the socket, as soon as the socket is bound.

        Call this only once. Raises RetriableError if the server's thread cannot start.
        """
        with self._lock:
            self._serve = serve
            if self._bound is not None:
                self._server = self._started_server(self._bound)

    def listen_at(self, host: str) -> HostPort:
        """Return the bound address; if there is none, bind a free port of the IP address `host`.

        If this host has lost an address that an earlier call bound, binds `host` instead. Raises
        RetriableError if `host` cannot be bound, if the server's thread cannot start, or after
        `stop`.
        """
        with self._lock:
            if self._is_stopped:
                raise RetriableError("cannot bind the HTTP API: it has stopped")
            if self._bound is None or self._must_move(self._bound, host):
                server, before = self._server, self._bound
                self._bound, self._server = self._serve_at(host)
                with suppress(RetriableError):  # Clients can no longer reach the old server.
                    _stop(server, before)
            elif self._server is None:
                self._server = self._started_server(self._bound)
            return bound_address(self._bound)

    def stop(self) -> None:
        """Finish running requests and close the socket.

        Raises RetriableError if the server does not stop in time.
        """
        with self._lock:
            self._is_stopped = True
            server, bound = self._server, self._bound
        _stop(server, bound)

    def _must_move(self, bound: socket.socket, host: str) -> bool:
        before = bound_address(bound).host
        return self._may_move and before != host and not self._has_address(before)

    def _serve_at(self, host: str) -> tuple[socket.socket, HttpServer | None]:
        """Bind a free port of `host` and serve it; close its socket on failure."""
        bound = _bind_free_port(host)
        try:
            return bound, self._started_server(bound)
        except BaseException:
            bound.close()
            raise

    def _started_server(self, bound: socket.socket) -> HttpServer | None:
        """Start a server on `bound`; return None before `start`."""
        if self._serve is None:
            return None
        server = self._serve(bound)
        try:
            server.start()
        except RuntimeError as error:  # No thread can be started.
            raise RetriableError("cannot serve the HTTP API", reason=error) from error
        return server


def _bind_free_port(host: str) -> socket.socket:
    """Bind a free port; the failure is retriable, because no setting names this address."""
    try:
        return bind_listener(HostPort(host=host, port=_ANY_PORT), key=REST_LISTENER_KEY)
    except InvalidConfigError as error:
        raise RetriableError(
            "the HTTP API cannot listen on the address that this host uses to reach its broker",
            host=host,
            reason=error.context["reason"],
            advice=f"If this persists, set {REST_LISTENER_KEY}",
        ) from error


def _stop(server: HttpServer | None, bound: socket.socket | None) -> None:
    if server is not None:
        server.stop()
    elif bound is not None:
        bound.close()
