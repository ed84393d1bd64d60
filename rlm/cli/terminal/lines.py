"""Fits lines to the width of the terminal.

A file or a pipe has no width: there every row and every sentence is one line, for grep and awk.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator

import typer

NARROW = 80
"""The least width that the output is made for, in columns."""

_HANGING = 2


def output_width() -> int | None:
    """Return the terminal's columns, at least 80; None if the output is a file or a pipe."""
    return max(NARROW, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output, wrapped at spaces to the width of a terminal."""
    for line in fitted(lines, output_width()):
        typer.echo(line)


def printable(text: str) -> str:
    """Return the text without control characters: clients and stores choose parts of it."""
    return "".join(each if each.isprintable() else "?" for each in text)


def fitted(lines: Iterable[str], width: int | None, *, hanging: int = _HANGING) -> Iterator[str]:
    """Yield the lines, the wider ones wrapped at spaces and indented by `hanging` more.

    A text without spaces that is wider than a line is broken; nothing is left out.
    """
    for each in lines:
        line = printable(each)
        if width is None or len(line) <= width:
            yield line
            continue
        indent = len(line) - len(line.lstrip())
        yield from textwrap.wrap(
            line.lstrip(),
            width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + hanging),
            break_on_hyphens=False,
        )
