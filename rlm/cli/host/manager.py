"""`rlm manager-process`: runs the manager process, for the supervisor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlm.app.broker_manager import BrokerManager
from rlm.app.manager import build_manager
from rlm.app.manager_process import run_manager
from rlm.broker.client_check import check_client
from rlm.cli.invocation.options import ConfigOption
from rlm.config.effective import SecretMask, secret_settings
from rlm.config.load import Config, load_config
from rlm.metrics.metrics import Metrics
from rlm.rest.api_listener import ApiListener
from rlm.worker.log_lines import configure_logging
from rlm.worker.recent_log import keep_recent_log

_SOCKET = typer.Option(help="File descriptor of an inherited listening socket.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("manager-process", hidden=True)(_manager)


def _manager(
    config: ConfigOption,
    probe_fd: Annotated[int | None, _SOCKET] = None,
    rest_fd: Annotated[int | None, _SOCKET] = None,
    supervised: Annotated[bool, typer.Option(help="End when the parent ends.")] = False,
) -> None:
    """Run the manager until a stop signal; with --supervised, stop also when the parent ends."""

    def build(loaded: Config, listener: ApiListener, metrics: Metrics) -> BrokerManager:
        mask = SecretMask(secret_settings(config))
        keep_recent_log(loaded.host.state_dir, "manager", mask)
        return build_manager(loaded, listener, metrics)

    run_manager(
        lambda: _load(config),
        build,
        probe_fd=probe_fd,
        rest_fd=rest_fd,
        supervised=supervised,
    )


def _load(path: Path) -> Config:
    config = load_config(path, check_client)
    configure_logging(config.process.logging_level, sys.stderr)
    return config
