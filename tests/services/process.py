"""One operating-system process of a test: started, signalled, and never leaked.

The process runs in a session of its own, so that Ctrl-C reaches only its starter and a
signal to its group reaches its children too. A watcher (a shell that waits for the end of an
inherited pipe) kills that group if its starter ends, even by kill -9.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.services.running_server import RunningServer

_WATCHER = 'read -r _; kill -9 "-$0" 2>/dev/null'
_TAIL_BYTES = 6000


class Watcher:
    """Kills a process group when this process ends, unless the watcher was dismissed before."""

    def __init__(self, group: int) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", _WATCHER, str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """End the watcher without a kill. May be called again."""
        self._shell.kill()
        self._shell.wait(10.0)
        if self._shell.stdin is not None:
            self._shell.stdin.close()


class ServiceProcess(RunningServer):
    """A command with its output in a file. Not thread-safe; can be started only once."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log_path: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        """Start the command; its standard output and error are appended to `log_path`."""
        self.log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if environment is None else {**os.environ, **environment},
                cwd=directory,
                start_new_session=True,
            )
        self._watcher = Watcher(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        return self._process.poll()

    def terminate(self, *, deadline_s: float = 30.0) -> int:
        if self._process.poll() is None:
            self._process.terminate()
        return self._wait(deadline_s)

    def interrupt(self, *, deadline_s: float = 30.0) -> int:
        """Send SIGINT, as Ctrl-C does, and wait; past the deadline SIGKILL."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self._wait(deadline_s)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, as a terminal does with Ctrl-C."""
        os.killpg(self._process.pid, number)

    def wait(self, *, deadline_s: float = 30.0) -> int:
        """Wait until it ends by itself; past the deadline SIGKILL. Returns the exit code."""
        return self._wait(deadline_s)

    def kill(self, *, children: bool = False) -> None:
        with contextlib.suppress(ProcessLookupError):
            if children:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        self._wait(10.0)

    def log_tail(self) -> str:
        return tail(self.log_path)

    def _wait(self, deadline_s: float) -> int:
        try:
            return self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(10.0)
        finally:
            self._watcher.dismiss()


def tail(log_path: Path) -> str:
    """Return the end of a server's output."""
    with log_path.open("rb") as log:
        log.seek(max(0, log_path.stat().st_size - _TAIL_BYTES))
        return log.read().decode(errors="replace")
