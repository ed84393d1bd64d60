"""Writes to the client in order, and no faster than the client receives.

The gateway writes its own responses directly to the socket if it can and the transport's buffer is
empty. Such a write bypasses the transport, to avoid copies of unsent data. The loop refuses to
watch a socket that belongs to a transport, so a direct write waits on a duplicate of the socket.
The duplicate is open only during the wait.

Memory: the transport's buffer (its high-water mark and one piece), broker bytes received before
the broker's side was paused, and unsent parts of responses. Until `release`, the sender of a
response accounts for its memory.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from rlm.gateway.model.actions import ResponseToClient
from rlm.gateway.relay.socket_tuning import enlarge_send_buffer
from rlm.wire.schema import Buffer

_PIECE_BYTES = 256 * 1024
_JOINED_BYTES = 16 * 1024
_PARTS_AT_ONCE = 16
_WRITES_AT_ONCE = 4
# Since Python 3.12, asyncio keeps references to unsent data; earlier versions copy the data.
_TRANSPORT_KEEPS_REFERENCES = sys.version_info >= (3, 12)
# One write of this size blocks the loop's other connections for a third of a millisecond.
_WRITE_BYTES = 1 << 20


class DirectWrites:
    """Writes directly to the socket of one connection. Use on its loop.

    The transport must have nothing to send. Between `wait` and `stop`, calls `writable` whenever
    the socket accepts data.
    """

    def __init__(self, client: socket.socket, writable: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = client
        self._writable = writable
        self._awaited_fd: int | None = None
        self._has_written = False

    def write(self, parts: Sequence[memoryview]) -> int:
        """Write as much of `parts` as the socket takes now; return the number of written bytes.

        Writes at most _WRITE_BYTES. Raises OSError if the connection is closed.
        """
        if not self._has_written:
            self._has_written = True
            enlarge_send_buffer(self._client)
        taken, left_bytes = [], _WRITE_BYTES
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
        """Start to wait until the socket takes more.

        Raises OSError if no file descriptor is free.
        """
        if self._awaited_fd is None:
            self._awaited_fd = os.dup(self._client.fileno())
            self._loop.add_writer(self._awaited_fd, self._writable)

    def stop(self) -> None:
        """Stop waiting. Idempotent."""
        if self._awaited_fd is not None:
            self._loop.remove_writer(self._awaited_fd)
            os.close(self._awaited_fd)
            self._awaited_fd = None


class ClientOutput:
    """Represents the output of one connection. Use on its loop.

    `client` is the connection's socket if the gateway can write to it directly
    (rlm.gateway.relay.splice.plain_socket), else None. After a wait for that socket, the output
    calls `moved` when no data waits any more. It calls `failed` if a direct write fails.
    `taken_count`: responses passed whole to the socket or the transport.
    """

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        *,
        client: socket.socket | None = None,
        moved: Callable[[], None] = lambda: None,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._transport = transport
        self._moved = moved
        self._failed = failed
        self._direct = None if client is None else DirectWrites(client, self._go_on_later)
        self._is_direct = False
        self._waiting: deque[Buffer | Callable[[], None]] = deque()
        self._is_paused = False
        self._sent_count = 0
        self.taken_count = 0

    @property
    def sent_count(self) -> int | None:
        """Return a count that grows whenever waiting data is sent; None while no data waits."""
        return self._sent_count if self._waiting else None

    @property
    def is_paused(self) -> bool:
        """Return whether the transport's buffer is full."""
        return self._is_paused

    @property
    def is_blocked(self) -> bool:
        """Return whether the caller should wait before it adds data."""
        return self._is_paused or bool(self._waiting)

    def write(self, data: Buffer) -> None:
        """Send data that is valid only during the call."""
        if self._waiting:
            self._waiting.append(bytes(data))
        else:
            write_received(self._transport, data)

    def respond(self, response: ResponseToClient) -> None:
        """Send a response that stays valid until its `release` is called."""
        if self._direct is not None and not self._waiting and not self._is_paused:
            self._is_direct = not self._transport.get_write_buffer_size()
        self._waiting.extend(_joined(response.parts))
        self._waiting.append(response.release)
        self._go_on()

    def pause(self) -> None:
        """Stop writing, because the transport's buffer is full."""
        self._is_paused = True

    def resume(self) -> None:
        """Continue writing, because the transport's buffer has space again."""
        self._is_paused = False
        self._go_on()

    def drop(self) -> None:
        """Discard all waiting data, and release the responses in it."""
        if self._direct is not None:
            self._direct.stop()
        while self._waiting:
            each = self._waiting.popleft()
            if callable(each):
                each()

    def _go_on(self) -> None:
        if self._is_direct and self._direct is not None:
            self._write_directly(self._direct)
        else:
            self._write_through()

    def _go_on_later(self) -> None:
        self._go_on()
        if not self._waiting:
            self._moved()

    def _write_directly(self, direct: DirectWrites) -> None:
        try:
            for _ in range(_WRITES_AT_ONCE):
                if not self._waiting or not self._write_some(direct):
                    break
            if self._waiting:
                direct.wait()
            else:
                direct.stop()
                self._is_direct = False
        except OSError:
            self.drop()
            self._failed()

    def _write_some(self, direct: DirectWrites) -> bool:
        """Write once; return whether the socket took all offered bytes."""
        offered = [
            memoryview(each) for each in islice(self._waiting, _PARTS_AT_ONCE) if not callable(each)
        ]
        offered_bytes = min(sum(map(len, offered)), _WRITE_BYTES)
        written_bytes = left_bytes = direct.write(offered)
        self._sent_count += 1 if written_bytes else 0
        while self._waiting:
            first = self._waiting[0]
            if callable(first):
                self._waiting.popleft()
                self._end_response(first)
            elif len(first) <= left_bytes:
                self._waiting.popleft()
                left_bytes -= len(first)
            else:
                self._waiting[0] = memoryview(first)[left_bytes:]
                break
        return written_bytes == offered_bytes

    def _end_response(self, release: Callable[[], None]) -> None:
        self.taken_count += 1
        release()

    def _write_through(self) -> None:
        while self._waiting and not self._is_paused:
            each = self._waiting.popleft()
            self._sent_count += 1
            if callable(each):
                self._end_response(each)
            elif len(each) <= _PIECE_BYTES:
                self._transport.write(each)
            else:
                view = memoryview(each)
                self._waiting.appendleft(view[_PIECE_BYTES:])
                self._transport.write(view[:_PIECE_BYTES])


def _joined(parts: list[Buffer]) -> list[Buffer]:
    """Join small parts, so that the socket does not send a packet for each part."""
    joined: list[Buffer] = []
    small = bytearray()
    for part in parts:
        if len(part) <= _JOINED_BYTES:
            small += part
            continue
        if small:
            joined.append(memoryview(small))
            small = bytearray()
        joined.append(part)
    if small:
        joined.append(memoryview(small))
    return joined


def write_received(transport: asyncio.WriteTransport, data: Buffer) -> None:
    """Write `data`, which is valid only during this call, to a transport."""
    transport.write(bytes(data) if _TRANSPORT_KEEPS_REFERENCES else data)
