"""The command `rlm`: its subcommands, and what an error becomes.

    exit code 0  done
              1  failed
              2  the command line, the configuration or the cluster's address is wrong
            130  ended by Ctrl-C

An error of ours is one line on standard error; a stack trace is a bug.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Annotated

import typer

from rlm.cli import gateway, manager, read, run, status, topic
from rsm.segment.errors import InvalidConfigError, TieredStorageError

_DISTRIBUTION = "kafka-rlm"
_COMMANDS = (run, gateway, topic, status, read, manager)


def main() -> None:
    """Run the command line of this process and exit."""
    try:
        build_app()(prog_name="rlm")
    except TieredStorageError as error:
        sys.stderr.write(f"rlm: {_one_line(error)}\n")
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)


def exit_code(error: TieredStorageError) -> int:
    """The code that a command ends with for an error."""
    return 2 if isinstance(error, InvalidConfigError) else 1


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"rlm {importlib.metadata.version(_DISTRIBUTION)}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="rlm",
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


def _one_line(error: TieredStorageError) -> str:
    return " ".join(str(error).split())
