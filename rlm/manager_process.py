"""The manager as a process. What it does is rlm.app's matter, how it ends rlm.worker_process's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics import Metrics
from rlm.rest.http_server import HttpServer
from rlm.rest.manager_api import ManagerView, manager_api
from rlm.worker_process import Worker, WorkerKind, run_worker


class Manager(ManagerView, Worker, Protocol):
    """What this module runs; built by rlm.app."""


ManagerBuilder = Callable[[Config, HostPort, Metrics], Manager]


def run_manager(
    load: Callable[[], Config], build: ManagerBuilder, *, rest_fd: int | None, supervised: bool
) -> None:
    """Run a manager until a stop signal or the parent's end; as `run_worker`."""
    kind: WorkerKind[Manager] = WorkerKind(
        name="manager",
        build=lambda config, address, metrics, _: build(config, address, metrics),
        serve=lambda manager, registry, bound: HttpServer(
            manager_api(manager, registry), bound, name="manager-http"
        ),
    )
    run_worker(kind, load, rest_fd=rest_fd, supervised=supervised)
