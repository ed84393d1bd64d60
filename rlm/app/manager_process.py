"""Runs the manager as a process, with rlm.worker.worker_process.

The process has two HTTP servers. The supervisor reads metrics, health and readiness on a loopback
port. Commands on any host use the manager's API (rlm.rest.api_listener).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Protocol

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics.metrics import Metrics
from rlm.rest.api_listener import REST_LISTENER_KEY, ApiListener
from rlm.rest.http_server import HttpServer
from rlm.rest.manager_api import ManagerView, manager_api
from rlm.rest.signed_api import WINDOW_MS, Authority, SignedApi
from rlm.rest.worker_api import worker_api
from rlm.tls.http_tls import server_context
from rlm.worker.recent_log import recent_log_text
from rlm.worker.worker_process import (
    LOOPBACK_LISTENER,
    Server,
    Worker,
    WorkerProgram,
    open_listening_socket,
    run_worker,
)
from rsm.system_clock import SystemClock


class Manager(ManagerView, Worker, Protocol):
    """Represents the manager that this module runs; rlm.app.manager builds it."""

    @property
    def authority(self) -> Authority:
        """Return the identity, secret and time with which the API checks requests and signs."""


ManagerBuilder = Callable[[Config, ApiListener, Metrics], Manager]


def run_manager(
    load: Callable[[], Config],
    build: ManagerBuilder,
    *,
    probe_fd: int | None,
    rest_fd: int | None,
    supervised: bool,
) -> None:
    """Run a manager until a stop signal, a permanent failure or, if `supervised`, the parent's end.

    `probe_fd` and `rest_fd` are descriptors of inherited listening sockets, for the supervisor and
    for `rest.listener`. If `rest_fd` is None, the manager binds `rest.listener` if that is set.
    """
    program = _ManagerProgram(build, rest_fd=rest_fd)
    run_worker(program, load, rest_fd=probe_fd, supervised=supervised)


class _ManagerProgram(WorkerProgram):
    name = "manager"

    def __init__(self, build: ManagerBuilder, *, rest_fd: int | None) -> None:
        self._build = build
        self._rest_fd = rest_fd

    def listener(self, config: Config) -> HostPort:
        return LOOPBACK_LISTENER

    def open(
        self, config: Config, bound: socket.socket, metrics: Metrics, stack: ExitStack
    ) -> tuple[Worker, Server]:
        api = ApiListener(_bound(config, self._rest_fd))
        stack.callback(api.stop)
        tls = server_context(config.rest_tls, SystemClock())
        manager = self._build(config, api, metrics)

        def serve_api(bound: socket.socket) -> HttpServer:
            app = _signed_api(config, manager, metrics)
            return HttpServer(app, bound, name="manager-http", tls=tls)

        probe = HttpServer(worker_api(manager, metrics.registry), bound, name="manager-probe")
        return manager, _Servers(probe, api, serve_api)


def _signed_api(config: Config, manager: Manager, metrics: Metrics) -> SignedApi:
    return SignedApi(
        manager_api(
            manager, metrics.registry, logs=partial(recent_log_text, config.host.state_dir)
        ),
        manager.authority,
        refused=lambda reason: metrics.http_refusals.labels(reason).inc(),
        # Both sides take the brokers' time from heartbeats, and each may lag by one interval.
        window_ms=WINDOW_MS + 2 * config.process.heartbeat_interval_ms,
    )


class _Servers:
    """Represents the probe's server and the API's server."""

    def __init__(
        self,
        probe: HttpServer,
        api: ApiListener,
        serve_api: Callable[[socket.socket], HttpServer],
    ) -> None:
        self._probe = probe
        self._api = api
        self._serve_api = serve_api

    def start(self) -> None:
        self._probe.start()
        self._api.start(self._serve_api)

    def stop(self) -> None:
        self._api.stop()
        self._probe.stop()


def _bound(config: Config, rest_fd: int | None) -> socket.socket | None:
    configured = config.process.rest_listener
    if rest_fd is None and configured is None:
        return None
    return open_listening_socket(
        rest_fd, configured or LOOPBACK_LISTENER, option="--rest-fd", key=REST_LISTENER_KEY
    )
