"""Writes to a client's socket past its transport, to avoid copies of unsent data.

The transport must have nothing to send meanwhile. The loop does not watch a socket that belongs to
a transport, so this module waits for writability on a duplicate, open only while it waits.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence

from rlm.gateway.relay.socket_tuning import take_answers_whole

# One write of this size blocks the loop's other connections for a third of a millisecond.
WRITE_BYTES = 1 << 20


class DirectWrites:
    """Direct writes of one connection. Use on its loop.

    Between `wait` and `stop`, calls `writable` whenever the socket accepts data.
    """

    def __init__(self, client: socket.socket, writable: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = client
        self._writable = writable
        self._awaited_fd: int | None = None
        self._has_written = False

    def write(self, parts: Sequence[memoryview]) -> int:
        """Write as much of `parts` as the socket takes now, and return the number of bytes.

        Writes at most WRITE_BYTES. Raises OSError if the connection has ended.
        """
        if not self._has_written:
            self._has_written = True
            take_answers_whole(self._client)
        taken, left_bytes = [], WRITE_BYTES
        for part in parts:
            taken.append(part[:left_bytes])
            left_bytes -= len(taken[-1])
            if not left_bytes:
                break
        try:
            return os.writev(self._client.fileno(), taken)
        except BlockingIOError:
            return 0

    def wait(self) -> None:
        """Wait until the socket takes more. Raises OSError if no file descriptor is left."""
        if self._awaited_fd is None:
            self._awaited_fd = os.dup(self._client.fileno())
            self._loop.add_writer(self._awaited_fd, self._writable)

    def stop(self) -> None:
        """Stop waiting. Idempotent."""
        if self._awaited_fd is not None:
            self._loop.remove_writer(self._awaited_fd)
            os.close(self._awaited_fd)
            self._awaited_fd = None
