"""SIGHUP to the processes of `rlm run` and `rlm gateway`, without a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.rlm.running_command import META_PROPERTIES, RunningCommand, running

_RELOADED = "reloaded the log level before=INFO now=ERROR"
_INBOX = """
from rlm.process.signals import RELOAD_SIGNAL, signal_inbox

with signal_inbox((RELOAD_SIGNAL,)) as inbox:
    print("ready", flush=True)
    while not (received := inbox.wait(60_000)):
        pass
    print(*received)
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[RunningCommand]:
    log_dir = tmp_path / "logs"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_text(META_PROPERTIES)
    with running("run", tmp_path, f"log.dirs={log_dir}", "gateway.listener=") as command:
        command.await_lines("worker started process=manager", 1)
        yield command


def test_run_when_the_file_is_invalid_then_one_error_until_supervisor_and_manager_take_the_next(
    host: RunningCommand,
) -> None:
    host.reload("logging.level=INFO", "logging.level=LOUD")
    host.await_lines("cannot reload the log level", 1)

    host.reload("logging.level=LOUD", "logging.level=ERROR")

    host.await_lines(_RELOADED, 2)
    assert sum("cannot reload" in line for line in host.lines()) == 1
    assert host.process.poll() is None


def test_gateway_when_the_level_changes_then_takes_it(tmp_path: Path) -> None:
    listener = ("gateway.listener=127.0.0.1:0", "gateway.advertised.listener=localhost:19092")
    with running("gateway", tmp_path, *listener) as host:
        host.await_lines("worker started process=gateway", 1)
        host.reload("logging.level=INFO", "logging.level=ERROR")

        host.await_lines(_RELOADED, 1)
        assert host.process.poll() is None


@pytest.mark.parametrize(("closes", "received"), [(False, signal.SIGHUP), (True, signal.SIGTERM)])
def test_signal_when_the_terminal_is_closed_then_hangup_is_a_stop(
    closes: bool, received: signal.Signals
) -> None:
    ours, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", _INBOX], stdin=terminal, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if closes:
            os.close(ours)
        process.send_signal(signal.SIGHUP)

        assert process.stdout.read().split() == [str(int(received))]
    os.close(terminal)
    if not closes:
        os.close(ours)
