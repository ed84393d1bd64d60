"""Fits lines and commands to the width of the terminal.

A file or a pipe has no width: each row and each sentence stays on one line, for grep and awk.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

import typer

NARROW = 80
"""The minimum width of the output on a terminal, in columns."""

_HANGING = 2
_PROMPT = "  > "
_CONTINUED = " \\"
_CONTINUATION = " " * 6
_COMMAND = re.compile(r"`[^`]+`")
_UNBROKEN = "\N{NO-BREAK SPACE}"
_ARGUMENT = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")


def output_width() -> int | None:
    """Return the terminal's columns, at least 80; None if the output is a file or a pipe."""
    return _width_of(sys.stdout)


def error_width() -> int | None:
    """Return the terminal's columns, at least 80; None if standard error is a file or a pipe."""
    return _width_of(sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output, wrapped at spaces to the width of a terminal."""
    for line in fitted(lines, output_width()):
        typer.echo(line)


def printable(text: str) -> str:
    """Replace unprintable characters with "?": clients and stores choose parts of the text."""
    return "".join(each if each.isprintable() else "?" for each in text)


def fitted(lines: Iterable[str], width: int | None, *, hanging: int = _HANGING) -> Iterator[str]:
    """Yield the lines; wrap wider ones at spaces, and indent their rest by `hanging` more.

    A command in backticks stays on one line if it fits, so that it can be copied. A wider command
    and a wider text without spaces are broken; nothing is omitted.
    """
    for each in lines:
        line = printable(each)
        if width is None or len(line) <= width:
            yield line
            continue
        indent = len(line) - len(line.lstrip())
        wrapped = textwrap.wrap(
            _COMMAND.sub(lambda found: found[0].replace(" ", _UNBROKEN), line.lstrip()),
            width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + hanging),
            break_on_hyphens=False,
        )
        yield from (part.replace(_UNBROKEN, " ") for part in wrapped)


def command_lines(command: str, width: int) -> Iterator[str]:
    """Yield a command after a prompt, in a form that can be copied to a shell.

    A wide command continues on the next line after a backslash. If one of its parts is still too
    wide, the command stays on one line, because a broken name cannot be copied.
    """
    lines = [_PROMPT]
    for part in _parts(printable(command)):
        room = width - len(_CONTINUED) - len(lines[-1]) - 1
        if lines[-1].strip(" >") and len(part) > room:
            lines.append(_CONTINUATION)
        lines[-1] += part if lines[-1].endswith(" ") else f" {part}"
    last = len(lines) - 1
    broken = [f"{line}{_CONTINUED if n < last else ''}" for n, line in enumerate(lines)]
    whole = f"{_PROMPT}{printable(command)}"
    is_broken = len(whole) > width and all(len(line) <= width for line in broken)
    yield from broken if is_broken else [whole]


def _width_of(stream: TextIO) -> int | None:
    return max(NARROW, shutil.get_terminal_size().columns) if stream.isatty() else None


def _parts(command: str) -> Sequence[str]:
    """Return the arguments of a command; an option includes the value after it."""
    parts: list[str] = []
    has_value = False
    for argument in _ARGUMENT.findall(command):
        if has_value and not argument.startswith("-"):
            parts[-1] += f" {argument}"
        else:
            parts.append(argument)
        has_value = argument.startswith("-")
    return parts
