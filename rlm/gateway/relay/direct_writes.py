"""Writes to a client's socket past its transport, which copies what the socket does not take.

The transport has nothing to send meanwhile, and writability is awaited at a duplicate: the loop
knows the socket as the transport's. A duplicate is only there while something is awaited.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence

from rlm.gateway.relay.socket_tuning import take_answers_whole

# What one write takes from the loop's other connections: a third of a millisecond.
WRITE_BYTES = 1 << 20


class DirectWrites:
    """Of one connection, on its loop. From `wait` to `stop` `writable` is called now and then."""

    def __init__(self, client: socket.socket, writable: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = client
        self._writable = writable
        self._awaited_fd: int | None = None
        self._has_written = False

    def write(self, parts: Sequence[memoryview]) -> int:
        """Write from the beginning of `parts` what the socket takes now; returns how many bytes.

        Raises OSError if the connection has ended.
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
        """Await that the socket takes more. Raises OSError if the system has no descriptors."""
        if self._awaited_fd is None:
            self._awaited_fd = os.dup(self._client.fileno())
            self._loop.add_writer(self._awaited_fd, self._writable)

    def stop(self) -> None:
        """Await nothing. Idempotent."""
        if self._awaited_fd is not None:
            self._loop.remove_writer(self._awaited_fd)
            os.close(self._awaited_fd)
            self._awaited_fd = None
