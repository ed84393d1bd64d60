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
from rlm.status.json_shape import JsonField, JsonKind, JsonShape

_GROUPS: Mapping[str, str] = MappingProxyType(
    {"storage": "kafka_rlm.storage", "layout": "kafka_rlm.layout"}
)
"""The group of entry points of each kind."""

PLUGINS_DOCUMENT = JsonShape(
    name="Plugins",
    meaning="The stores and layouts that installed distributions offer.",
    fields={
        "plugins": JsonField(
            JsonShape(
                name="InstalledPlugin",
                meaning="One store or layout.",
                fields={
                    "kind": JsonField(
                        JsonKind.TEXT, f"One of {', '.join(f'`{each}`' for each in _GROUPS)}."
                    ),
                    "name": JsonField(JsonKind.TEXT, "The name that its distribution gives it."),
                    "class": JsonField(
                        JsonKind.TEXT, "The value for the configuration: `package.module:Class`."
                    ),
                    "distribution": JsonField(JsonKind.TEXT, "The distribution.", is_nullable=True),
                    "version": JsonField(JsonKind.TEXT, "Its version.", is_nullable=True),
                },
            ),
            "By kind and name.",
            is_list=True,
        )
    },
)

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
        plugin_row(kind, each)
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


def plugin_row(kind: str, found: EntryPoint) -> Mapping[str, str | None]:
    """Return the columns of a plug-in, which are also its fields for programs."""
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
