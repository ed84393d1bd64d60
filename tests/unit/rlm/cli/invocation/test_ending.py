"""How a command ends after Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from rlm.cli.invocation.ending import exit_code
from rsm.segment.errors import HostNotReadyError, InvalidConfigError

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
    """confluent-kafka's Consumer raises TypeError after a Ctrl-C."""
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


_INTERRUPTED_IMPORT = """
import signal, sys
from rlm.__main__ import main

class Interruption:
    def find_spec(self, name, *_others):
        if name == "rlm.cli.main":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interruption())
main()
"""


def test_command_when_interrupted_during_its_imports_then_ends_by_the_signal_without_text() -> None:
    command = [sys.executable, "-c", _INTERRUPTED_IMPORT]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


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


@pytest.mark.parametrize(
    ("command", "code", "whole_lines"),
    [
        (["-c", _FAILING], 1, 0),
        (["-m", "rlm", "topic", "set", "orders", "--inherit", "retntion-ms"], 2, 3),
    ],
    ids=["error", "usage"],
)
def test_error_when_printed_on_a_terminal_then_wrapped_at_80_columns_elsewhere_one_line(
    command: list[str], code: int, whole_lines: int
) -> None:
    reader, terminal = os.openpty()
    environment = {**os.environ, "COLUMNS": "80"}

    done = subprocess.run([sys.executable, *command], stderr=terminal, env=environment, check=False)
    piped = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)

    os.close(terminal)
    shown = os.read(reader, 4096).decode().splitlines()
    os.close(reader)
    wrapped = shown[whole_lines:]
    assert len(wrapped) > 1
    assert max(map(len, shown)) <= 80
    one_line = " ".join(line.strip() for line in wrapped)
    assert piped.stderr.splitlines() == [*shown[:whole_lines], one_line]
    assert (done.returncode, piped.returncode) == (code, code)


@pytest.mark.parametrize(
    ("ending", "code"), [("return", 0), ("raise typer.Exit(7)", 7), ("raise typer.Abort", 1)]
)
def test_command_when_it_ends_without_an_error_then_its_exit_code_and_no_trace(
    ending: str, code: int
) -> None:
    lines = _FAILING.splitlines()
    program = "\n".join(f"    {ending}" if "raise" in line else line for line in lines)

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (code, b"")


def _run(error: str) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(error=error)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [(HostNotReadyError("no disk"), 1), (InvalidConfigError("no number"), 2)],
)
def test_exit_code_when_the_host_is_not_ready_then_systemd_starts_the_command_again(
    error: InvalidConfigError, code: int
) -> None:
    """The systemd unit prevents a restart only after exit code 2."""
    assert exit_code(error) == code
