"""Run children as processes of the operating system.

A child's standard input is a pipe whose other end only the supervisor has. The child reads end of
file once the supervisor is gone, however it ended (rlm.process.parent_watch reads the pipe). Each
child has its own process group: Ctrl-C reaches only the supervisor, which stops children in order.
"""

from __future__ import annotations

import subprocess

from rlm.process.child import Child, ChildSpec
from rsm.segment.errors import RetriableError


class OsChild:
    """Represents a running process; see `Child`."""

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

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


class OsSpawner:
    """Starts children with the supervisor's standard output and error."""

    def spawn(self, spec: ChildSpec) -> Child:
        try:
            process = subprocess.Popen(
                spec.command,
                stdin=subprocess.PIPE,
                pass_fds=spec.inherited_fds,
                process_group=0,
            )
        except OSError as error:
            raise RetriableError(
                "process cannot be started", process=spec.name, reason=error.strerror
            ) from error
        return OsChild(process)
