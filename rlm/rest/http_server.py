"""Serves an ASGI application on a bound socket, in its own thread.

Limits the number of connections, and the time of each request, response, idle connection and
stop. A socket is bound before it is served, so that the supervisor can bind it once and pass it to
its children.
"""

from __future__ import annotations

import errno
import socket
import ssl
import threading

import uvicorn
from starlette.types import ASGIApp

from rlm.config.host_address import is_unspecified
from rlm.config.values import HostPort
from rlm.rest.timed_protocol import ConnectionLimits, TimedConfig, TimedProtocol
from rsm.segment.errors import HostNotReadyError, InvalidConfigError, RetriableError

_CONNECTION_COUNT_MAX = 64
_BACKLOG_COUNT = 64
_KEEP_ALIVE_S = 5
_STOP_S = 2
_LIMITS = ConnectionLimits()
_PASSING_ERRORS = {errno.EADDRINUSE, errno.EADDRNOTAVAIL, socket.EAI_AGAIN}


def bind_listener(listener: HostPort, *, key: str) -> socket.socket:
    """Listen on the address. Raises the error of `listen_error` if it cannot be bound."""
    try:
        address = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(address[0], address[1], address[2])
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address[4])
            bound.listen(_BACKLOG_COUNT)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise listen_error(error, listener, key=key) from error
    return bound


def listen_error(error: OSError, listener: HostPort, *, key: str) -> InvalidConfigError:
    """Return the error for an address that cannot be bound: HostNotReadyError if a retry may help.

    A retry helps if another process ends, the network starts, or the name service answers again.
    """
    passes = error.errno in _PASSING_ERRORS
    advice = "Give an address of this host and a free port"
    if passes:
        advice = f"rlm can start once the address is free and on this host. Or {advice.lower()}"
    return (HostNotReadyError if passes else InvalidConfigError)(
        "cannot listen on the address",
        key=key,
        found=listener,
        reason=error.strerror,
        advice=advice,
    )


def bound_address(bound: socket.socket) -> HostPort:
    """Return the address and port of a bound socket; the address may be a wildcard."""
    host, port = bound.getsockname()[:2]
    return HostPort(host=host, port=port)


def local_address(bound: socket.socket) -> HostPort:
    """Return the address that processes of this host can connect to."""
    host, port = bound.getsockname()[:2]
    loopback = "::1" if bound.family == socket.AF_INET6 else "127.0.0.1"
    return HostPort(host=loopback if is_unspecified(host) else host, port=port)


class _TlsConfig(TimedConfig):
    """Represents a configuration with an existing TLS context, which can reload its certificate."""

    tls: ssl.SSLContext | None = None

    def load(self) -> None:
        super().load()
        self.ssl = self.tls


class HttpServer:
    """Represents one server in one thread. Call `start` and `stop` once; `start` is optional."""

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        *,
        name: str,
        tls: ssl.SSLContext | None = None,
        limits: ConnectionLimits = _LIMITS,
    ) -> None:
        """Serve `app` on `bound`, which the server owns from now on; use HTTPS if `tls` is set."""
        self._bound = bound
        config = _TlsConfig(
            app,
            http=TimedProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTION_COUNT_MAX,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_STOP_S,
        )
        config.tls = tls
        config.limits = limits
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [bound]}, name=name, daemon=True
        )

    def start(self) -> None:
        """Start to serve, beginning with the connections in the socket's backlog."""
        self._thread.start()

    def stop(self) -> None:
        """Finish running requests, cancel them after 2 s, and close the socket.

        Raises RetriableError if the server's thread does not end in time.
        """
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(2 * _STOP_S)
        if self._thread.is_alive():
            raise RetriableError("the HTTP server did not stop in time", thread=self._thread.name)
        self._bound.close()
