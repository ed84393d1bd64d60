"""Pools the pipes through which the connections of a loop splice bytes.

A connection needs a pipe only during a splice. Creating a pipe costs as much as using it, so the
pool keeps a few unused pipes.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass

PIPE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """Represents the non-blocking ends of a pipe."""

    read_fd: int
    write_fd: int

    def close(self) -> None:
        """Close both ends, and discard the bytes in the pipe."""
        os.close(self.read_fd)
        os.close(self.write_fd)


class Pipes:
    """Represents the pipes of one loop. Keeps at most `kept_count` unused pipes."""

    def __init__(self, *, kept_count: int = 16) -> None:
        self._kept: list[Pipe] = []
        self._kept_count = kept_count

    def take(self) -> Pipe | None:
        """Return an empty pipe; None if the system cannot create one."""
        if self._kept:
            return self._kept.pop()
        try:
            read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        # The system limits the total size of a user's pipes. The default size also works.
        with suppress(OSError):
            fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return Pipe(read_fd=read_fd, write_fd=write_fd)

    def give_back(self, pipe: Pipe) -> None:
        """Return an empty pipe to the pool."""
        if len(self._kept) < self._kept_count:
            self._kept.append(pipe)
        else:
            pipe.close()

    def close(self) -> None:
        """Close all unused pipes."""
        while self._kept:
            self._kept.pop().close()
