"""Where the manager's HTTP API listens.

With `rest.listener` the socket is bound before the process works. Without it the socket is bound at
the address by which this host reaches its broker, once that is known: other hosts reach the broker
by that network too, and the API is open on no other. It moves to another address when the host has
that one no more.
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
    """Whether this host has an IP address now: whether a socket can be bound there."""
    try:
        bind_listener(HostPort(host=host, port=_ANY_PORT), key=REST_LISTENER_KEY).close()
    except InvalidConfigError:
        return False
    return True


class ApiListener:
    """One listening socket and, once it is bound, the server on it. Thread-safe."""

    def __init__(
        self,
        bound: socket.socket | None = None,
        *,
        has_address: Callable[[str], bool] = has_address,
    ) -> None:
        """Own `bound` from here on; None: `listen_at` binds one.

        `has_address`: whether this host still has an IP address.
        """
        self._bound = bound
        self._may_move = bound is None
        self._has_address = has_address
        self._serve: Callable[[socket.socket], HttpServer] | None = None
        self._server: HttpServer | None = None
        self._is_stopped = False
        self._lock = Lock()

    def start(self, serve: Callable[[socket.socket], HttpServer]) -> None:
        """Serve with what `serve` makes of the socket: now, or as soon as it is bound. Once."""
        with self._lock:
            self._serve = serve
            self._start_server()

    def listen_at(self, host: str) -> HostPort:
        """The bound address; if there is none yet, bind a free port of `host`, an IP address.

        Also if this host has lost the address that an earlier call has bound. Raises RetriableError
        if `host` cannot be bound, or after `stop`.
        """
        with self._lock:
            if self._is_stopped:
                raise RetriableError("the HTTP API has stopped")
            if self._bound is None or self._must_move(self._bound, host):
                server, before = self._server, self._bound
                self._bound, self._server = _bind_free_port(host), None
                self._start_server()
                with suppress(RetriableError):  # nobody reaches it any more
                    _stop(server, before)
            return bound_address(self._bound)

    def stop(self) -> None:
        """Finish requests under way and close the socket. RetriableError if that takes long."""
        with self._lock:
            self._is_stopped = True
            server, bound = self._server, self._bound
        _stop(server, bound)

    def _must_move(self, bound: socket.socket, host: str) -> bool:
        before = bound_address(bound).host
        return self._may_move and before != host and not self._has_address(before)

    def _start_server(self) -> None:
        if self._bound is None or self._serve is None or self._server is not None:
            return
        self._server = self._serve(self._bound)
        self._server.start()


def _bind_free_port(host: str) -> socket.socket:
    """Nobody has set this address, so it may be had later, and no setting is named as wrong."""
    try:
        return bind_listener(HostPort(host=host, port=_ANY_PORT), key=REST_LISTENER_KEY)
    except InvalidConfigError as error:
        raise RetriableError(
            "the HTTP API cannot listen where this host reaches its broker: set "
            f"{REST_LISTENER_KEY} if that lasts",
            host=host,
            reason=error.context["reason"],
        ) from error


def _stop(server: HttpServer | None, bound: socket.socket | None) -> None:
    if server is not None:
        server.stop()
    elif bound is not None:
        bound.close()
