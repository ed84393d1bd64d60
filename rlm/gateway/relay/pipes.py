"""Pools the pipes through which the connections of a loop splice bytes.

A connection needs a pipe only during a splice. Creating a pipe costs as much as using it, so the
pool keeps a few.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass

PIPE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """The non-blocking ends of a pipe."""

    read_fd: int
    write_fd: int

    def close(self) -> None:
        """Close both ends, and discard any content."""
        os.close(self.read_fd)
        os.close(self.write_fd)


class Pipes:
    """The pipes of one loop. Keeps at most `kept_count` unused ones."""

    def __init__(self, *, kept_count: int = 16) -> None:
        self._kept: list[Pipe] = []
        self._kept_count = kept_count

    def take(self) -> Pipe | None:
        """Return an empty pipe; None if the system provides no more."""
        if self._kept:
            return self._kept.pop()
        try:
            read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        # The system limits each user's large pipes; the default size works too, but is slower.
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
