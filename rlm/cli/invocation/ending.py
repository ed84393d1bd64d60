"""Ends a command with an exit code, and prints an error as one line.

exit code 0  done
          1  failed
          2  the command line, the configuration or the cluster's address is wrong
        130  ended by Ctrl-C

An error of `rlm` is one line on standard error; a stack trace is a bug.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import typer

from rlm.cli.invocation.command_start import CommandStart
from rlm.cli.invocation.interrupt import Interrupt
from rsm.segment.errors import InvalidConfigError, TieredStorageError

_INTERRUPTED = 128 + signal.SIGINT


def run_app(app: typer.Typer) -> None:
    """Run the command line of this process with `app` and exit."""
    start = CommandStart(monotonic_s=time.monotonic() - time.process_time())
    interrupt = Interrupt()
    try:
        app(prog_name="rlm", obj=start)
    except (Exception, KeyboardInterrupt) as error:
        if interrupt.is_received or isinstance(error, KeyboardInterrupt):
            sys.exit(_INTERRUPTED)
        if not isinstance(error, TieredStorageError):
            raise
        sys.stderr.write(f"rlm: {_one_line(error)}\n")
        sys.exit(exit_code(error))


def run_program(function: Callable[..., None]) -> None:
    """Run this process's command line with a single command, and exit."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(function)
    run_app(app)


def exit_code(error: TieredStorageError) -> int:
    """Return the exit code for an error."""
    return 2 if isinstance(error, InvalidConfigError) else 1


def _one_line(error: TieredStorageError) -> str:
    return " ".join(str(error).split())
