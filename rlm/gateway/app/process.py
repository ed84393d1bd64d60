"""Runs a gateway as a process; rlm.gateway.app.app builds the gateway."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.gateway.app.open_files import raise_open_file_limit, warn_of_few_open_files
from rlm.metrics.metrics import Metrics
from rlm.process.state_dir import locked_state_dir
from rlm.rest.http_server import HttpServer, bound_address
from rlm.rest.worker_api import WorkerView, worker_api
from rlm.worker.client_listener import bind_closed
from rlm.worker.worker_process import (
    LOOPBACK_LISTENER,
    Server,
    Worker,
    WorkerProgram,
    open_inherited_socket,
    run_worker,
)
from rsm.segment.errors import InvalidConfigError

LISTENER_KEY = "gateway.listener"


class Gateway(WorkerView, Worker, Protocol):
    """Represents the gateway to run, as rlm.gateway.app.app builds it."""


GatewayBuilder = Callable[[Config, socket.socket, HostPort, Metrics], Gateway]


def run_gateway(
    load: Callable[[], Config],
    build: GatewayBuilder,
    *,
    gateway_fd: int | None,
    rest_fd: int | None,
    supervised: bool,
) -> None:
    """Run a gateway until a stop signal or until its parent exits, as `run_worker` does.

    `build` receives the clients' socket, which does not listen yet. That is the inherited socket
    `gateway_fd` if there is one, else a new one bound to `gateway.listener`.
    """
    program = _GatewayProgram(build, gateway_fd=gateway_fd)
    run_worker(program, load, rest_fd=rest_fd, supervised=supervised)


class _GatewayProgram(WorkerProgram):
    name = "gateway"

    def __init__(self, build: GatewayBuilder, *, gateway_fd: int | None) -> None:
        self._build = build
        self._gateway_fd = gateway_fd

    def listener(self, config: Config) -> HostPort:
        return config.process.rest_listener or LOOPBACK_LISTENER

    def open(
        self, config: Config, bound: socket.socket, metrics: Metrics, stack: ExitStack
    ) -> tuple[Worker, Server]:
        clients = self._clients_socket(config)
        stack.callback(clients.close)
        warn_of_few_open_files(
            raise_open_file_limit(), connection_count=config.gateway.max_connections
        )
        if not config.host.log_dirs:  # With `log.dirs`, the supervisor may hold the lock.
            stack.enter_context(locked_state_dir(config.host.state_dir))
        gateway = self._build(config, clients, bound_address(bound), metrics)
        return gateway, HttpServer(
            worker_api(gateway, metrics.registry), bound, name="gateway-http"
        )

    def _clients_socket(self, config: Config) -> socket.socket:
        listener = config.gateway.listener
        if listener is None:
            raise InvalidConfigError(
                "cannot run a gateway: its listener is empty",
                key=LISTENER_KEY,
                advice="Set it to the host and port that clients connect to",
            )
        if self._gateway_fd is None:
            return bind_closed(listener, key=LISTENER_KEY)
        return open_inherited_socket(self._gateway_fd, option="--gateway-fd")
