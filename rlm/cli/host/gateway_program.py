"""`rlm gateway-process`: runs one gateway process, for the supervisor and `rlm gateway`.

This is a separate command so that `rlm gateway -h` does not import the gateway's modules.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from rlm.broker.client_check import check_client
from rlm.cli.invocation.options import ConfigOption
from rlm.config.effective import SecretMask, secret_settings
from rlm.config.load import Config, load_gateway_config
from rlm.config.values import HostPort
from rlm.gateway.app.app import build_gateway
from rlm.gateway.app.limits import share_of_worker
from rlm.gateway.app.process import run_gateway
from rlm.gateway.app.worker import GatewayWorker
from rlm.metrics.metrics import Metrics
from rlm.process.open_access import warn_of_open_access
from rlm.worker.log_lines import configure_logging
from rlm.worker.recent_log import keep_recent_log

_SOCKET = typer.Option(help="File descriptor of an inherited listening socket.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gateway-process", hidden=True)(_gateway)


def _gateway(
    config: ConfigOption,
    gateway_fd: Annotated[int | None, _SOCKET] = None,
    rest_fd: Annotated[int | None, _SOCKET] = None,
    worker: Annotated[
        int | None, typer.Option(help="Number of this process among gateway.workers.", min=1)
    ] = None,
    supervised: Annotated[bool, typer.Option(help="End when the parent ends.")] = False,
) -> None:
    """Serve clients until a stop signal; with --supervised, stop also when the parent ends."""

    def load() -> Config:
        loaded = _load(config, supervised=supervised)
        return loaded if worker is None else share_of_worker(loaded)

    def build(
        loaded: Config, clients: socket.socket, http_bound: HostPort, metrics: Metrics
    ) -> GatewayWorker:
        number = worker or 1
        name = "gateway" if loaded.gateway.worker_count == 1 else f"gateway-{number}"
        mask = SecretMask(secret_settings(config))
        keep_recent_log(loaded.host.state_dir, name, mask)
        return build_gateway(loaded, clients, http_bound, metrics, worker=number)

    run_gateway(
        load,
        build,
        gateway_fd=gateway_fd,
        rest_fd=rest_fd,
        supervised=supervised,
    )


def _load(path: Path, *, supervised: bool) -> Config:
    config = load_gateway_config(path, check_client)
    configure_logging(config.process.logging_level, sys.stderr)
    if not supervised:  # Otherwise, the supervisor has already warned.
        warn_of_open_access(config, path)
    return config
