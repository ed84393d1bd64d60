"""`rlm plugins`: lists the stores and layouts that installed distributions offer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

import typer

from rlm.cli.invocation.options import JsonOption
from rlm.cli.invocation.output import printing
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rsm.program.json_shape import JsonField, JsonKind, JsonShape

_GROUPS: Mapping[str, str] = MappingProxyType(
    {"storage": "kafka_rlm.storage", "layout": "kafka_rlm.layout"}
)
"""Maps each kind to its group of entry points."""

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
                        JsonKind.TEXT,
                        "The value for the configuration: `package.module:Class`.",
                    ),
                    "distribution": JsonField(JsonKind.TEXT, "The distribution.", is_nullable=True),
                    "version": JsonField(JsonKind.TEXT, "Its version.", is_nullable=True),
                },
            ),
            "The plug-ins, by kind and name.",
            is_list=True,
        )
    },
)

_COLUMNS = (
    TextColumn(name="kind"),
    TextColumn(name="name"),
    TextColumn(name="class", is_movable=True),
    TextColumn(name="distribution", is_movable=True),
    TextColumn(name="version"),
)
_EXAMPLES = """Examples:

\b
  rlm plugins list
  rlm plugins list --json

\b
Set rsm.config.storage.backend to the class of a store, and rsm.config.layout
to the class of a layout.
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

    Imports no plug-in, so the list includes plug-ins that cannot be loaded.
    """
    rows = [
        plugin_row(kind, each)
        for kind, group in _GROUPS.items()
        for each in sorted(entry_points(group=group), key=lambda found: (found.name, found.value))
    ]
    with printing():
        if as_json:
            sys.stdout.write(json.dumps({"plugins": rows}) + "\n")
        else:
            print_lines(plugin_lines(rows, width=output_width()))


def plugin_row(kind: str, found: EntryPoint) -> Mapping[str, str | None]:
    """Return a plug-in as an InstalledPlugin document; the table shows the same fields."""
    distribution = found.dist
    return {
        "kind": kind,
        "name": found.name,
        "class": found.value,
        "distribution": None if distribution is None else distribution.name,
        "version": None if distribution is None else distribution.version,
    }


def plugin_lines(
    plugins: Sequence[Mapping[str, str | None]], *, width: int | None
) -> Iterator[str]:
    """Yield the table."""
    rows = [TextRow(cells=[each[column.name] or "" for column in _COLUMNS]) for each in plugins]
    none = ["no stores or layouts are installed as plug-ins"]
    yield from table_lines(_COLUMNS, rows, width=width) if rows else none
