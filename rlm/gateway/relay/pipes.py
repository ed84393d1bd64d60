"""The pipes through which the connections of a loop pass bytes inside the kernel.

A pipe is needed while bytes are under way, which for most connections is hardly ever, and making
one costs as much as using it: so a few are kept.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass

PIPE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """Both ends, which never block."""

    read_fd: int
    write_fd: int

    def close(self) -> None:
        """Give up what is in it, too."""
        os.close(self.read_fd)
        os.close(self.write_fd)


class Pipes:
    """Of one loop. Holds at most `kept_count` that nobody uses."""

    def __init__(self, *, kept_count: int = 16) -> None:
        self._kept: list[Pipe] = []
        self._kept_count = kept_count

    def take(self) -> Pipe | None:
        """An empty one; None if the system has no more of them."""
        if self._kept:
            return self._kept.pop()
        try:
            read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        # A user has only so much of large pipes; one of the usual size does as well, slower.
        with suppress(OSError):
            fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return Pipe(read_fd=read_fd, write_fd=write_fd)

    def give_back(self, pipe: Pipe) -> None:
        """Take back an empty one."""
        if len(self._kept) < self._kept_count:
            self._kept.append(pipe)
        else:
            pipe.close()

    def close(self) -> None:
        """Close those that are not in use."""
        while self._kept:
            self._kept.pop().close()
