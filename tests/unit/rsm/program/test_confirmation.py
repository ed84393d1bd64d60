"""When a program asks for confirmation, with real terminals and without."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest

_PROGRAM = """
import sys

from rsm.program.confirmation import confirm, confirm_on_terminal, require_consent
from rsm.segment.errors import InvalidConfigError, StoppedError

try:
    {call}
    print("acted")
except (InvalidConfigError, StoppedError) as error:
    sys.stderr.write(str(error))
    sys.exit(2 if isinstance(error, InvalidConfigError) else 1)
"""
_CONFIRM = 'confirm("Delete 12 objects of orders?", yes={yes})'


def _on_terminal(call: str, answer: bytes) -> subprocess.CompletedProcess[str]:
    ours, terminal = os.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(call=call)],
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        )
    finally:
        os.close(terminal)
    shown = _read_to_end(ours)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout, shown.decode(errors="replace")
    )


def _read_to_end(terminal: int) -> bytes:
    """Read what was written to a terminal whose other side is closed; it arrives in pieces."""
    shown = b""
    with open(terminal, "rb", buffering=0) as stream, suppress(OSError):  # EIO is the end
        while piece := stream.read(4096):
            shown += piece
    return shown


def _without_terminal(call: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(call=call)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_confirm_when_the_user_agrees_then_the_command_acts(answer: bytes) -> None:
    done = _on_terminal(_CONFIRM.format(yes=False), answer)

    assert (done.returncode, done.stdout) == (0, "acted\n")
    assert "Delete 12 objects of orders? [y/N] " in done.stderr


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", b"y\xe9s\n"])
def test_confirm_when_the_user_does_not_agree_then_nothing_and_exit_code_1(answer: bytes) -> None:
    """The last answer is not UTF-8."""
    done = _on_terminal(_CONFIRM.format(yes=False), answer)

    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was changed, because the change was not confirmed" in done.stderr


@pytest.mark.parametrize(
    "call", [_CONFIRM.format(yes=False), "require_consent(yes=False, dry_run=False)"]
)
def test_confirm_when_there_is_no_terminal_then_refused_with_exit_code_2(call: str) -> None:
    done = _without_terminal(call)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--yes" in done.stderr


def test_confirm_when_standard_input_is_closed_then_refused_with_exit_code_2() -> None:
    program = _PROGRAM.format(call=_CONFIRM.format(yes=False))
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <&-', sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "--yes" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "call",
    [
        _CONFIRM.format(yes=True),
        "require_consent(yes=False, dry_run=True)",
        'confirm_on_terminal("End the tiering?", yes=False)',
    ],
)
def test_confirm_when_no_answer_is_needed_then_acts_without_a_question(call: str) -> None:
    done = _without_terminal(call)

    assert (done.returncode, done.stdout, done.stderr) == (0, "acted\n", "")
