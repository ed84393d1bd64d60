"""Runs children as processes of the operating system.

A child's standard input is a pipe, and only the supervisor has the other end. So the child reads
end of file once the supervisor has ended for any reason (rlm.process.parent_watch reads the pipe).
Each child has its own process group: Ctrl-C reaches only the supervisor, which stops the children.
A child starts with SIGHUP blocked, so that a SIGHUP before its handler is set does not end it.
"""

from __future__ import annotations

import signal
import subprocess

from rlm.process.child import Child, ChildSpec
from rlm.process.signals import RELOAD_SIGNAL
from rsm.segment.errors import RetriableError


class OsChild:
    """Represents a started process; see `Child`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        code = self._process.poll()
        if code is not None and self._process.stdin is not None:
            self._process.stdin.close()
        return code

    def reload(self) -> None:
        self._process.send_signal(RELOAD_SIGNAL)

    def terminate(self) -> None:
        self._process.terminate()

    def write_stacks(self) -> None:
        self._process.send_signal(signal.SIGQUIT)

    def kill(self) -> None:
        self._process.kill()


class OsSpawner:
    """Starts children with the supervisor's standard output and error."""

    def spawn(self, spec: ChildSpec) -> Child:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {RELOAD_SIGNAL})
        try:
            process = subprocess.Popen(
                spec.command,
                stdin=subprocess.PIPE,
                pass_fds=spec.inherited_fds,
                process_group=0,
            )
        except OSError as error:
            raise RetriableError(
                "cannot start the process", process=spec.name, reason=error.strerror
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return OsChild(process)
