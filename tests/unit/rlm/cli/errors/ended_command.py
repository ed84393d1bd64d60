"""Runs a command line in this process: its errors and its exit code, as a user sees them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from rlm.cli.invocation.ending import error_line, exit_code
from rlm.cli.terminal.lines import fitted
from rsm.segment.errors import TieredStorageError
from tests.unit.rlm.cli.golden_text import COLUMNS
from tests.unit.rlm.cli.test_help import COMMAND

_ADVICE = re.compile(r"\. [A-Z`].*\.$")
_EXPECTATIONS = ("expected=", "rule=", "did_you_mean=")


def ended(command: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield the command, its lines on standard error, and its exit code."""
    error: TieredStorageError | None = None
    code: object = 0
    try:
        COMMAND.main(shlex.split(command), prog_name="rlm")
    except SystemExit as exited:
        code = exited.code
    except TieredStorageError as found:
        error = found
    yield f"$ rlm {command}"
    yield from (line for line in capsys.readouterr().err.splitlines() if line)
    yield from [f"exit code {code}"] if error is None else shown(error)


def shown(error: TieredStorageError) -> Iterator[str]:
    """Yield the line and the exit code of an error."""
    yield error_line(error)
    yield f"exit code {exit_code(error)}"


def on_terminal(lines: list[str]) -> Iterator[str]:
    """Yield the lines as a terminal of 80 columns shows them."""
    for line in lines:
        yield from fitted([line], COLUMNS) if line.startswith("rlm: ") else [line]


def without_advice(lines: list[str]) -> list[str]:
    """Return the errors of `rlm` that do not say what to do."""
    errors = [line for line in lines if line.startswith("rlm: ")]
    assert errors
    return [
        line
        for line in errors
        if not _ADVICE.search(line) and not any(each in line for each in _EXPECTATIONS)
    ]
