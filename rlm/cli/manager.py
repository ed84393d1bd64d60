"""`rlm manager`: what the supervisor starts; not for users."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlm.app import build_manager
from rlm.cli.options import ConfigOption
from rlm.config.load import Config, load_config
from rlm.log_lines import configure_logging
from rlm.manager_process import run_manager


def register(app: typer.Typer) -> None:
    """Add the command, hidden from the help."""
    app.command("manager", hidden=True)(_manager)


def _manager(
    config: ConfigOption,
    rest_fd: Annotated[int | None, typer.Option(help="An inherited listening socket.")] = None,
    supervised: Annotated[bool, typer.Option(help="End with the parent's pipe.")] = False,
) -> None:
    """Run the manager alone, without a supervisor's restarts."""
    run_manager(lambda: _load(config), build_manager, rest_fd=rest_fd, supervised=supervised)


def _load(path: Path) -> Config:
    config = load_config(path)
    configure_logging(config.process.logging_level, sys.stderr)
    return config
