"""`rlm plugins`: lists the stores and layouts that installed distributions offer."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

import typer
from rich.console import Console
from rich.table import Table

from rlm.cli.invocation.options import JsonOption
from rlm.cli.invocation.output import printing

_GROUPS: Mapping[str, str] = MappingProxyType(
    {"storage": "kafka_rlm.storage", "layout": "kafka_rlm.layout"}
)
"""The group of entry points of each kind."""

_WIDE = 200  # columns of a table in a file or a pipe
_COLUMNS = ("kind", "name", "class", "distribution", "version")
_EXAMPLES = """Examples:

\b
  rlm plugins list
  rlm plugins list --json

\b
Give a store's class to rsm.config.storage.backend, and a layout's to
rsm.config.layout.
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="List installed plug-ins.", no_args_is_help=True)
    commands.callback()(_plugins)
    commands.command("list", epilog=_EXAMPLES)(_list)
    app.add_typer(commands, name="plugins")


def _plugins() -> None:
    """List installed plug-ins."""


def _list(as_json: JsonOption = False) -> None:
    """List the stores and layouts of installed distributions.

    Imports none of them, so a plug-in that cannot be loaded is listed, too.
    """
    rows = [
        _row(kind, each)
        for kind, group in _GROUPS.items()
        for each in sorted(entry_points(group=group), key=lambda found: (found.name, found.value))
    ]
    with printing():
        if as_json:
            sys.stdout.write(json.dumps({"plugins": rows}) + "\n")
        elif rows:
            Console(width=None if sys.stdout.isatty() else _WIDE, markup=False).print(_table(rows))
        else:
            typer.echo("no plug-ins are installed")


def _row(kind: str, found: EntryPoint) -> Mapping[str, str | None]:
    distribution = found.dist
    return {
        "kind": kind,
        "name": found.name,
        "class": found.value,
        "distribution": None if distribution is None else distribution.name,
        "version": None if distribution is None else distribution.version,
    }


def _table(rows: list[Mapping[str, str | None]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(row[column] or "" for column in _COLUMNS))
    return table
