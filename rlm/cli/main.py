"""The command `rlm`: its subcommands. How they end is rlm.cli.ending's matter."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from rlm.cli import (
    blocks,
    check,
    dlq,
    explain,
    gateway,
    metadata,
    offload,
    pause,
    processes,
    read,
    retention,
    run,
    secret,
    status,
    storage,
    topic,
    uninstall,
)
from rlm.cli.ending import run_app
from rlm.cli.output import printing

_DISTRIBUTION = "kafka-rlm"
_COMMANDS = (
    run,
    gateway,
    topic,
    status,
    processes,
    explain,
    read,
    offload,
    pause,
    retention,
    dlq,
    metadata,
    blocks,
    storage,
    check,
    secret,
    uninstall,
)


def main() -> None:
    """Run the command line of this process and exit."""
    run_app(build_app())


def _print_version(asked: bool) -> None:
    if asked:
        with printing():
            typer.echo(f"rlm {importlib.metadata.version(_DISTRIBUTION)}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="rlm",
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for command in _COMMANDS:
        command.register(app)
    return app


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_print_version,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Tiered storage for any Apache Kafka cluster, from outside the broker."""
