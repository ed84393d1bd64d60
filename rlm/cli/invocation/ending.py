"""Ends a command with an exit code, and prints its error, which is wrapped on a terminal.

exit code 0  the command succeeded
          1  the command failed, or the host is not ready yet: run the command again
          2  the command line, the configuration or the cluster's address is wrong
        130  Ctrl-C ended the command

An error of `rlm` is one line on standard error, after the usage if the command line is wrong. A
stack trace is a bug.
"""

from __future__ import annotations

import io
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

import typer

from rlm.cli.invocation.command_start import CommandStart
from rlm.cli.terminal.lines import error_width, fitted
from rsm.segment.errors import HostNotReadyError, InvalidConfigError, TieredStorageError

_INTERRUPTED = 128 + signal.SIGINT


class Interrupt:
    """Represents handlers that raise KeyboardInterrupt for signals, and record their arrival.

    Some libraries replace that exception: confluent-kafka's Consumer raises TypeError if a signal
    arrives while it reads the configuration. `is_received` lets the program end as interrupted even
    then, without a stack trace. Create one instance per process, in the main thread. Signals that
    the process ignores, for example because of `nohup`, stay ignored.
    """

    def __init__(self, *also: signal.Signals) -> None:
        self.is_received = False
        for number in (signal.SIGINT, *also):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._raise)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        self.is_received = True
        raise KeyboardInterrupt


def run_app(app: typer.Typer) -> None:
    """Run the command line of this process with `app` and exit."""
    start = CommandStart(monotonic_s=time.monotonic() - time.process_time())
    interrupt = Interrupt()
    try:
        code = app(prog_name="rlm", obj=start, standalone_mode=False)
    except typer.Abort:
        sys.exit(1)
    except typer.TyperException as error:
        _print_error(usage_lines(error))
        sys.exit(error.exit_code)
    except (Exception, KeyboardInterrupt) as error:
        if interrupt.is_received or isinstance(error, KeyboardInterrupt):
            sys.exit(_INTERRUPTED)
        if not isinstance(error, TieredStorageError):
            raise
        _print_error([error_line(error)])
        sys.exit(exit_code(error))
    sys.exit(code or 0)  # None, or the code of typer.Exit


def _print_error(lines: Iterable[str]) -> None:
    for line in fitted(lines, error_width()):
        sys.stderr.write(f"{line}\n")


def usage_lines(error: Any) -> Sequence[str]:  # noqa: ANN401 - typer's is private
    """Return the usage and the error of a wrong command line, as lines for standard error."""
    text = io.StringIO()
    error.show(text)
    return text.getvalue().splitlines()


def exit_code(error: TieredStorageError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, HostNotReadyError):
        return 1
    return 2 if isinstance(error, InvalidConfigError) else 1


def error_line(error: TieredStorageError) -> str:
    """Return an error as one line for standard error."""
    return f"rlm: {' '.join(str(error).split())}"
