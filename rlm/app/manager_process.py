"""Run the manager as a process: rlm.app.manager composes it, rlm.worker.worker_process ends it.

The process has two HTTP servers. The supervisor reads metrics, health and readiness on a loopback
port. Commands on any host use the manager's API (rlm.rest.api_listener).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics.metrics import Metrics
from rlm.rest.api_listener import REST_LISTENER_KEY, ApiListener
from rlm.rest.http_server import HttpServer
from rlm.rest.manager_api import ManagerView, manager_api
from rlm.rest.signed_api import WINDOW_MS, Authority, SignedApi
from rlm.rest.worker_api import worker_api
from rlm.tls.http_tls import server_context
from rlm.worker.worker_process import (
    LOOPBACK_LISTENER,
    Worker,
    WorkerKind,
    listening_socket,
    run_worker,
)
from rsm.system_clock import SystemClock


class Manager(ManagerView, Worker, Protocol):
    """Represents the manager that this module runs; rlm.app.manager builds it."""

    @property
    def authority(self) -> Authority:
        """Return the authority with which the API signs."""


ManagerBuilder = Callable[[Config, ApiListener, Metrics], Manager]


def run_manager(
    load: Callable[[], Config],
    build: ManagerBuilder,
    *,
    probe_fd: int | None,
    rest_fd: int | None,
    supervised: bool,
) -> None:
    """Run a manager until a stop signal or the parent's end; as `run_worker`.

    `probe_fd` and `rest_fd` are inherited listening sockets, for the supervisor and for
    `rest.listener`. Without `rest_fd`, the manager binds `rest.listener` itself if it is set.
    """
    built: list[_Api] = []

    def build_listening(
        config: Config, _probe: HostPort, metrics: Metrics, stack: ExitStack
    ) -> Manager:
        listener = ApiListener(_bound(config, rest_fd))
        stack.callback(listener.stop)
        # Both sides take the brokers' time from heartbeats, and each may lag by one interval.
        window_ms = WINDOW_MS + 2 * config.process.heartbeat_interval_ms
        tls = server_context(config.rest_tls, SystemClock())
        built.append(_Api(listener=listener, metrics=metrics, window_ms=window_ms, tls=tls))
        return build(config, listener, metrics)

    def serve(manager: Manager, registry: CollectorRegistry, probe: socket.socket) -> _Servers:
        probe_server = HttpServer(worker_api(manager, registry), probe, name="manager-probe")
        return _Servers(probe_server, built[0], manager)

    kind: WorkerKind[Manager] = WorkerKind(
        name="manager", listens=lambda _: LOOPBACK_LISTENER, build=build_listening, serve=serve
    )
    run_worker(kind, load, rest_fd=probe_fd, supervised=supervised)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """Represents the parts of the manager's API, except the manager itself."""

    listener: ApiListener
    metrics: Metrics
    window_ms: int
    tls: ssl.SSLContext | None

    def serve(self, manager: Manager, bound: socket.socket) -> HttpServer:
        refusals = self.metrics.http_refusals
        app = SignedApi(
            manager_api(manager, self.metrics.registry),
            manager.authority,
            refused=lambda reason: refusals.labels(reason).inc(),
            window_ms=self.window_ms,
        )
        return HttpServer(app, bound, name="manager-http", tls=self.tls)


class _Servers:
    """Represents the probe's server and the API's server."""

    def __init__(self, probe: HttpServer, api: _Api, manager: Manager) -> None:
        self._probe = probe
        self._api = api
        self._manager = manager

    def start(self) -> None:
        self._probe.start()
        self._api.listener.start(lambda bound: self._api.serve(self._manager, bound))

    def stop(self) -> None:
        self._api.listener.stop()
        self._probe.stop()


def _bound(config: Config, rest_fd: int | None) -> socket.socket | None:
    configured = config.process.rest_listener
    if rest_fd is None and configured is None:
        return None
    return listening_socket(
        rest_fd, configured or LOOPBACK_LISTENER, option="--rest-fd", key=REST_LISTENER_KEY
    )
