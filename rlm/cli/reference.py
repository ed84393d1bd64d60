"""Generates docs/cli.md: `python -m rlm.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from rlm.cli.invocation.readable_command import help_rows
from rlm.cli.main import build_app

_HEAD = """# Command line

Every command has `-h`. You can write a command's options before or after its arguments.
[Another page](spark-jobs.md) describes the Spark jobs. `make docs` writes this page.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed during its work, or found what it looks for (`status --check`, `check`) |
| 2 | you must correct something first: the command line, the configuration, or what they name |
| 130 | ended by Ctrl-C |

An error is one line on standard error, wrapped on a terminal. Most errors end with what to do. Exit
code 1 is for:

- a broker, a manager or the store that does not answer in time, or denies a permission,
- a topic, a partition, a segment or a file that does not exist, other than the configuration file,
- corrupt stored data, or stored data that this version cannot read,
- a host that is not ready for `rlm run` yet: a disk is not mounted, or a port is occupied,
- work that another process took over, or a wait past its time limit.

The same command can succeed later, and it may have done a part of its work. Exit code 2 is for:

- an unknown option, a value out of range, options that exclude each other, and a missing `--yes`,
- a configuration file that is missing or invalid, or does not fit this host,
- a cluster that is unreachable or refuses the command's first request,
- a state that forbids the command: a topic unsuitable for tiering, a pause, a live process.

The command has changed nothing, and fails again if you only repeat it. A command that waits for
managers can find such a state later; the managers' earlier work stays. If a command reports a
condition with its exit code, its description says so.

| command | what it does |
|---|---|
"""
_KEEPS_LINES = "\b"  # With this mark, click does not join the lines of a paragraph.


def render() -> str:
    """Return the whole page."""
    commands = dict(_commands(typer.main.get_command(build_app()), ()))
    rows = (f"| {_link(names)} | {_summary(command)} |" for names, command in commands.items())
    sections = (_section(names, command) for names, command in commands.items())
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


def _commands(group: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 - typer's are private
    """Yield all commands except groups and hidden ones, in the order of the help."""
    context = group.context_class(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from _commands(command, (*names, name))
        elif not command.hidden:
            yield (*names, name), command


def _link(names: tuple[str, ...]) -> str:
    return f"[`rlm {' '.join(names)}`](#rlm-{'-'.join(names)})"


def _summary(command: Any) -> str:  # noqa: ANN401 - typer's are private
    return str(command.help).partition("\n")[0]


def _section(names: tuple[str, ...], command: Any) -> str:  # noqa: ANN401 - typer's are private
    context = command.context_class(command, info_name=" ".join(("rlm", *names)))
    parts = [
        f"## `rlm {' '.join(names)}`",
        f"    {command.get_usage(context).removeprefix('Usage: ').strip()}".replace("\n", "\n    "),
        "\n\n".join(_paragraphs(command.help)),
    ]
    rows = [_row(*found) for found in help_rows(command.params, context)]
    if rows:
        parts.append("\n".join(("| | meaning |", "|---|---|", *rows)))
    parts.extend(_indented(command.epilog or ""))
    return "\n\n".join(parts) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; indent those that keep their lines."""
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith(_KEEPS_LINES):
            yield from _indented(paragraph)
        else:
            yield " ".join(paragraph.split())


def _indented(text: str) -> Iterator[str]:
    lines = text.replace(_KEEPS_LINES, "").removeprefix("Example: ").splitlines()
    if any(line.strip() for line in lines):
        yield "\n".join(f"    {line}".rstrip() for line in lines if line.strip())


def _row(names: str, meaning: str) -> str:
    shown, explained = (" ".join(each.replace("|", "\\|").split()) for each in (names, meaning))
    return f"| `{shown}` | {explained} |"


if __name__ == "__main__":
    sys.stdout.write(render())
