"""The manager as a process. What it does is rlm.app's matter, how it ends rlm.worker_process's.

It has two HTTP servers. The one on a loopback port is for the supervisor: metrics, health and
readiness. The other is the manager's API, for commands on any host (rlm.rest.api_listener).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from prometheus_client import CollectorRegistry

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics import Metrics
from rlm.rest.api_listener import REST_LISTENER_KEY, ApiListener
from rlm.rest.http_server import HttpServer
from rlm.rest.manager_api import ManagerView, manager_api
from rlm.rest.worker_api import worker_api
from rlm.worker_process import (
    LOOPBACK_LISTENER,
    Worker,
    WorkerKind,
    listening_socket,
    run_worker,
)


class Manager(ManagerView, Worker, Protocol):
    """What this module runs; built by rlm.app."""


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

    `probe_fd` and `rest_fd` are inherited listening sockets: the supervisor's own and that of
    `rest.listener`. Without the latter, `rest.listener` is bound if it is set.
    """
    listener = ApiListener()

    def build_listening(
        config: Config, _probe: HostPort, metrics: Metrics, stack: ExitStack
    ) -> Manager:
        nonlocal listener
        listener = ApiListener(_bound(config, rest_fd))
        stack.callback(listener.stop)
        return build(config, listener, metrics)

    def serve(manager: Manager, registry: CollectorRegistry, probe: socket.socket) -> _Servers:
        return _Servers(
            HttpServer(worker_api(manager, registry), probe, name="manager-probe"),
            listener,
            lambda bound: HttpServer(manager_api(manager, registry), bound, name="manager-http"),
        )

    kind: WorkerKind[Manager] = WorkerKind(
        name="manager", listens=lambda _: LOOPBACK_LISTENER, build=build_listening, serve=serve
    )
    run_worker(kind, load, rest_fd=probe_fd, supervised=supervised)


class _Servers:
    """The supervisor's and everybody's."""

    def __init__(
        self,
        probe: HttpServer,
        listener: ApiListener,
        serve: Callable[[socket.socket], HttpServer],
    ) -> None:
        self._probe = probe
        self._listener = listener
        self._serve = serve

    def start(self) -> None:
        self._probe.start()
        self._listener.start(self._serve)

    def stop(self) -> None:
        self._listener.stop()
        self._probe.stop()


def _bound(config: Config, rest_fd: int | None) -> socket.socket | None:
    configured = config.process.rest_listener
    if rest_fd is None and configured is None:
        return None
    return listening_socket(
        rest_fd, configured or LOOPBACK_LISTENER, option="--rest-fd", key=REST_LISTENER_KEY
    )
