"""`rlm gateway`: the gateway alone; `rlm run` starts it beside the manager."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlm.broker.client_check import check_client
from rlm.cli.options import ConfigOption
from rlm.config.load import Config, load_config
from rlm.gateway_app import build_gateway
from rlm.gateway_process import run_gateway
from rlm.log_lines import configure_logging

_SOCKET = typer.Option(help="An inherited listening socket.", hidden=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gateway", epilog="Example: rlm gateway --config rlm.properties")(_gateway)


def _gateway(
    config: ConfigOption,
    gateway_fd: Annotated[int | None, _SOCKET] = None,
    rest_fd: Annotated[int | None, _SOCKET] = None,
    supervised: Annotated[
        bool, typer.Option(help="End with the parent's pipe.", hidden=True)
    ] = False,
) -> None:
    """Serve clients beside a broker until SIGTERM or Ctrl-C, without a supervisor's restarts."""
    run_gateway(
        lambda: _load(config),
        build_gateway,
        gateway_fd=gateway_fd,
        rest_fd=rest_fd,
        supervised=supervised,
    )


def _load(path: Path) -> Config:
    config = load_config(path, check_client)
    configure_logging(config.process.logging_level, sys.stderr)
    return config
