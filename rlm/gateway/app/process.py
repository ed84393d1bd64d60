"""Runs a gateway as a process; rlm.gateway.app.app builds the gateway."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics.metrics import Metrics
from rlm.process.state_dir import locked_state_dir
from rlm.rest.http_server import HttpServer
from rlm.rest.worker_api import WorkerView, worker_api
from rlm.worker.client_listener import bind_closed
from rlm.worker.worker_process import (
    LOOPBACK_LISTENER,
    Worker,
    WorkerKind,
    inherited_socket,
    run_worker,
)
from rsm.segment.errors import InvalidConfigError

LISTENER_KEY = "gateway.listener"


class Gateway(WorkerView, Worker, Protocol):
    """The gateway to run, as rlm.gateway.app.app builds it."""


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

    `build` receives the clients' socket, which does not listen yet: the inherited `gateway_fd`,
    else a new one bound to `gateway.listener`.
    """

    def build_bound(
        config: Config, http_address: HostPort, metrics: Metrics, stack: ExitStack
    ) -> Gateway:
        listener = config.gateway.listener
        if listener is None:
            raise InvalidConfigError("no gateway is configured", key=LISTENER_KEY)
        if gateway_fd is None:
            bound = bind_closed(listener, key=LISTENER_KEY)
        else:
            bound = inherited_socket(gateway_fd, option="--gateway-fd")
        stack.callback(bound.close)
        if not config.host.log_dirs:  # with `log.dirs` the supervisor has locked it
            stack.enter_context(locked_state_dir(config.host.state_dir))
        return build(config, bound, http_address, metrics)

    kind: WorkerKind[Gateway] = WorkerKind(
        name="gateway",
        listens=lambda config: config.process.rest_listener or LOOPBACK_LISTENER,
        build=build_bound,
        serve=lambda gateway, registry, bound: HttpServer(
            worker_api(gateway, registry), bound, name="gateway-http"
        ),
    )
    run_worker(kind, load, rest_fd=rest_fd, supervised=supervised)
