"""How a command ends that Ctrl-C has reached."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os, signal
import typer
from rlm.cli.invocation.ending import run_app
from rsm.segment.errors import RetriableError

def command() -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    except KeyboardInterrupt:
        raise {error} from None

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command)
run_app(app)
"""


@pytest.mark.parametrize(
    "error", ["KeyboardInterrupt", "TypeError('a name')", "RetriableError('no answer')"]
)
def test_command_when_interrupted_in_a_library_then_exit_code_130_and_no_text(error: str) -> None:
    """confluent-kafka's Consumer makes a TypeError of a Ctrl-C."""
    done = _run(error)

    assert (done.returncode, done.stderr) == (130, "")


def test_command_when_it_ignores_interrupts_then_is_not_ended() -> None:
    program = _PROGRAM.format(error="SystemExit(3)").replace(
        "signal.pause()", "raise SystemExit(4)"
    )
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + program

    done = subprocess.run([sys.executable, "-c", ignoring], capture_output=True, check=False)

    assert done.returncode == 4


def test_command_when_an_error_is_not_of_an_interrupt_then_its_trace_is_shown() -> None:
    program = _PROGRAM.format(error="TypeError").replace(
        "os.kill(os.getpid(), signal.SIGINT)", "1 + ''"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == 1
    assert b"TypeError" in done.stderr


_FAILING = """
import typer
from rlm.cli.invocation.ending import run_app
from rsm.segment.errors import RetriableError

def command() -> None:
    raise RetriableError("the store does not respond", address="s" * 60, advice="Run it again")

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command)
run_app(app)
"""


def test_error_when_printed_on_a_terminal_then_wrapped_at_80_columns_elsewhere_one_line() -> None:
    reader, terminal = os.openpty()
    command = [sys.executable, "-c", _FAILING]
    environment = {**os.environ, "COLUMNS": "80"}

    subprocess.run(command, stderr=terminal, env=environment, check=False)
    piped = subprocess.run(command, capture_output=True, text=True, check=False)

    os.close(terminal)
    shown = os.read(reader, 4096).decode().splitlines()
    os.close(reader)
    assert len(shown) > 1
    assert max(map(len, shown)) <= 80
    assert piped.stderr == f"{' '.join(line.strip() for line in shown)}\n"


def _run(error: str) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(error=error)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
