"""SIGHUP to the processes of `rlm run` and `rlm gateway`, without a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.waiting import wait_until

_RELOADED = "reloaded the log level before=INFO now=ERROR"
_INBOX = """
from rlm.process.signals import RELOAD_SIGNAL, signal_inbox

with signal_inbox((RELOAD_SIGNAL,)) as inbox:
    print("ready", flush=True)
    while not (received := inbox.wait(60_000)):
        pass
    print(*received)
"""


class _Host:
    """A running command, its configuration file and its log."""

    def __init__(self, process: subprocess.Popen[bytes], config: Path, log: Path) -> None:
        self.process = process
        self.config = config
        self._log = log

    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()

    def reload(self, old: str, new: str) -> None:
        self.config.write_text(self.config.read_text().replace(old, new))
        self.process.send_signal(signal.SIGHUP)

    def await_lines(self, text: str, count: int) -> None:
        wait_until(
            lambda: sum(text in line for line in self.lines()) >= count,
            deadline_s=60.0,
            describe=lambda: f"{count} lines with {text!r} in {self.lines()}",
        )


@contextmanager
def _running(command: str, directory: Path, *settings: str) -> Iterator[_Host]:
    store = directory / "store"
    store.mkdir()
    config, log = directory / "rlm.properties", directory / "log"
    keys = (
        "bootstrap.servers=127.0.0.1:1",
        f"state.dir={directory / 'state'}",
        "rsm.config.storage.backend=filesystem",
        f"rsm.config.storage.filesystem.root={store}",
        "logging.level=INFO",
        *settings,
    )
    config.write_text("\n".join(keys) + "\n")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rlm", command, "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    with process:
        try:
            yield _Host(process, config, log)
        finally:
            process.terminate()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[_Host]:
    log_dir = tmp_path / "logs"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_text(
        "version=1\ncluster.id=5L6g3nShT-eMCtK--X86sw\nnode.id=1\n"
    )
    with _running("run", tmp_path, f"log.dirs={log_dir}", "gateway.listener=") as running:
        running.await_lines("worker started process=manager", 1)
        yield running


def test_run_when_the_level_changes_then_supervisor_and_manager_take_it(host: _Host) -> None:
    host.reload("logging.level=INFO", "logging.level=ERROR")

    host.await_lines(_RELOADED, 2)
    assert host.process.poll() is None


def test_run_when_the_file_is_invalid_then_one_error_and_nothing_changes(host: _Host) -> None:
    host.reload("logging.level=INFO", "logging.level=LOUD")
    host.await_lines("cannot reload the log level", 1)

    host.reload("logging.level=LOUD", "logging.level=ERROR")

    host.await_lines(_RELOADED, 2)
    assert sum("cannot reload" in line for line in host.lines()) == 1


def test_gateway_when_the_level_changes_then_takes_it(tmp_path: Path) -> None:
    listener = ("gateway.listener=127.0.0.1:0", "gateway.advertised.listener=localhost:19092")
    with _running("gateway", tmp_path, *listener) as host:
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
