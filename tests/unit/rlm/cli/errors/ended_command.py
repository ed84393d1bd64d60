"""Runs a command line in this process: its errors and its exit code, as a user sees them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import typer

from rlm.cli.invocation.ending import error_line, exit_code, usage_lines
from rlm.cli.terminal.lines import fitted
from rsm.segment.errors import TieredStorageError
from tests.unit.rlm.cli.golden_text import COLUMNS, TYPED
from tests.unit.rlm.cli.test_help import COMMAND

_ADVICE = re.compile(r"\. [A-Z`].*\.$")
_EXPECTATIONS = ("expected=", "rule=", "did_you_mean=")


def ended(command: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield the command, its lines on standard error, and its exit code."""
    try:
        code = COMMAND.main(shlex.split(command), prog_name="rlm", standalone_mode=False)
        ending = [f"exit code {code or 0}"]
    except typer.TyperException as error:
        ending = [*filter(None, usage_lines(error)), f"exit code {error.exit_code}"]
    except TieredStorageError as error:
        ending = [*shown(error)]
    yield f"$ rlm {command}"
    yield from (line for line in capsys.readouterr().err.splitlines() if line)
    yield from ending


def shown(error: TieredStorageError) -> Iterator[str]:
    """Yield the line and the exit code of an error."""
    yield error_line(error)
    yield f"exit code {exit_code(error)}"


def on_terminal(lines: list[str]) -> Iterator[str]:
    """Yield the lines as a terminal of 80 columns shows them."""
    for line in lines:
        yield from [line] if line.startswith(TYPED) else fitted([line], COLUMNS)


def without_advice(lines: list[str]) -> list[str]:
    """Return the errors of `rlm` that do not say what to do."""
    errors = [line for line in lines if line.startswith("rlm: ")]
    assert errors
    return [
        line
        for line in errors
        if not _ADVICE.search(line) and not any(each in line for each in _EXPECTATIONS)
    ]
