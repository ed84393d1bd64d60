from __future__ import annotations

import time

import pytest
import typer

from rlm.cli.invocation.command_start import CommandStart, less_start_up


def _context(started: object) -> typer.Context:
    app = typer.Typer()
    app.command()(_do_nothing)
    return typer.Context(typer.main.get_command(app), obj=started)


def _do_nothing() -> None:
    """A command."""


def test_timeout_when_start_up_took_long_then_is_what_is_left() -> None:
    started = CommandStart(monotonic_s=time.monotonic() - 10.0)

    assert less_start_up(_context(started), 30.0) == pytest.approx(20.0, abs=5.0)


def test_timeout_when_start_up_took_all_of_it_then_is_a_moment() -> None:
    started = CommandStart(monotonic_s=time.monotonic() - 10.0)

    assert less_start_up(_context(started), 1.0) == pytest.approx(0.1)


def test_timeout_when_start_is_not_known_then_is_all_of_it() -> None:
    assert less_start_up(_context(None), 3.0) == 3.0
