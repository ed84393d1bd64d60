"""Splices bytes from the broker's socket to the client's socket in the kernel, by splice(2).

The relay splices the records of responses, which it does not decode. The kernel moves received
pages through a pipe to the other socket, at half the cost of receive and send. The sockets still
belong to their transports. During a splice, the broker's transport is paused and the client's
transport has nothing to send. The splice waits for readiness on duplicates of the sockets. The
gateway cannot splice TLS connections.

Memory: PIPE_BYTES of kernel memory for each connection during a splice.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.relay.pipes import PIPE_BYTES, Pipe, Pipes

_SLICE_BYTES = 4 * PIPE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplicePath:
    """Represents the path of the bytes: duplicates of both sockets, and the pipe between them."""

    broker_fd: int
    pipe: Pipe
    client_fd: int


class Splice:
    """Represents the splice from broker to client of one connection. Use on its loop.

    When all bytes have moved, it calls `done` with their number. If a side closes earlier, it calls
    `failed` with the disconnect cause. After `close`, it calls neither. `active_s`: the loop time
    when it last tried to move bytes.
    """

    def __init__(
        self,
        broker: socket.socket,
        client: socket.socket,
        *,
        pipes: Pipes,
        done: Callable[[int], None],
        failed: Callable[[DisconnectCause], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._broker = broker
        self._client = client
        self._pipes = pipes
        self._done = done
        self._failed = failed
        self._way: _SplicePath | None = None
        self._asked_bytes = 0
        self._left_bytes = 0
        self._buffered_bytes = 0
        self.active_s = 0.0
        self._ended: DisconnectCause | None = None
        self._awaited_fd: int | None = None

    @property
    def is_running(self) -> bool:
        """Return whether a splice runs. Only the splice may then read and write the sockets."""
        return self._way is not None

    def begin(self, count: int) -> None:
        """Start to splice the broker's next `count` bytes; move bytes that have already arrived.

        Does nothing if no file descriptor is free.
        """
        pipe = self._pipes.take()
        if pipe is None:
            return
        ends = _duplicates(self._broker, self._client)
        if ends is None:
            self._pipes.give_back(pipe)
            return
        self._way = _SplicePath(broker_fd=ends[0], pipe=pipe, client_fd=ends[1])
        self._asked_bytes = self._left_bytes = count
        self._go_on()

    def close(self) -> None:
        """Stop a running splice and discard its bytes. Idempotent."""
        way = self._way
        if way is None:
            return
        self._wait_for(None)
        self._way = None
        os.close(way.broker_fd)
        os.close(way.client_fd)
        if self._buffered_bytes:
            way.pipe.close()
        else:
            self._pipes.give_back(way.pipe)

    def _go_on(self) -> None:
        """Move available bytes, about _SLICE_BYTES at most, so that other connections can run."""
        way = self._way
        assert way is not None
        self.active_s = self._loop.time()
        slice_bytes = 0
        while slice_bytes < _SLICE_BYTES and self._fill(way):
            slice_bytes += self._empty_pipe(way)
            if self._buffered_bytes:
                break
        if not self._left_bytes and not self._buffered_bytes:
            self.close()
            self._done(self._asked_bytes)
        elif self._ended is None:
            self._wait_for(way.client_fd if self._buffered_bytes else way.broker_fd)
        else:
            self._failed(self._ended)

    def _fill(self, way: _SplicePath) -> bool:
        """Fill the pipe from the broker if it is empty; return whether it now contains bytes."""
        if not self._buffered_bytes and self._left_bytes:
            self._buffered_bytes = self._splice(
                way.broker_fd,
                way.pipe.write_fd,
                min(self._left_bytes, PIPE_BYTES),
                ended=DisconnectCause.BROKER_CLOSED,
            )
            self._left_bytes -= self._buffered_bytes
        return self._buffered_bytes > 0

    def _empty_pipe(self, way: _SplicePath) -> int:
        drained_bytes = self._splice(
            way.pipe.read_fd, way.client_fd, self._buffered_bytes, ended=DisconnectCause.CLIENT_LEFT
        )
        self._buffered_bytes -= drained_bytes
        return drained_bytes

    def _splice(self, from_fd: int, to_fd: int, count: int, *, ended: DisconnectCause) -> int:
        try:
            moved_bytes = os.splice(from_fd, to_fd, count, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            return 0
        except OSError:
            moved_bytes = 0
        if not moved_bytes:
            self._ended = ended
        return moved_bytes

    def _wait_for(self, fd: int | None) -> None:
        """Continue when `fd` is ready, and stop waiting for the other side; None only stops."""
        way = self._way
        assert way is not None
        if fd == self._awaited_fd:
            return
        if self._awaited_fd == way.client_fd:
            self._loop.remove_writer(way.client_fd)
        elif self._awaited_fd == way.broker_fd:
            self._loop.remove_reader(way.broker_fd)
        self._awaited_fd = fd
        if fd == way.client_fd:
            self._loop.add_writer(fd, self._go_on)
        elif fd == way.broker_fd:
            self._loop.add_reader(fd, self._go_on)


def _duplicates(broker: socket.socket, client: socket.socket) -> tuple[int, int] | None:
    try:
        broker_fd = os.dup(broker.fileno())
    except OSError:
        return None
    try:
        return broker_fd, os.dup(client.fileno())
    except OSError:
        os.close(broker_fd)
        return None


def plain_socket(transport: asyncio.BaseTransport) -> socket.socket | None:
    """Return the transport's socket; None if it uses TLS or the system lacks splice(2)."""
    if not hasattr(os, "splice") or transport.get_extra_info("sslcontext") is not None:
        return None
    found: socket.socket | None = transport.get_extra_info("socket")
    return found
