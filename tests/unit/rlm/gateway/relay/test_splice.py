"""Bytes that pass from one socket to another inside the kernel: all of them, in order."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.relay.pipes import Pipe, Pipes
from rlm.gateway.relay.splice import Splice

_DEADLINE_S = 10.0
_LARGE_BYTES = 3 << 20


class _Spliced:
    """`far_broker` and `far_client` are the remote ends of the spliced sockets."""

    def __init__(self, pipes: Pipes) -> None:
        self.far_broker, broker = socket.socketpair()
        client, self.far_client = socket.socketpair()
        self._sockets = (self.far_broker, broker, client, self.far_client)
        for each in self._sockets:
            each.setblocking(False)  # noqa: FBT003 - positional only
        self.done: list[int] = []
        self.failures: list[DisconnectCause] = []
        self._happened = asyncio.Event()
        self.splice = Splice(broker, client, pipes=pipes, done=self._done, failed=self._failed)

    async def until_failed(self) -> None:
        while not self.failures:
            await self._next()

    async def until_done(self) -> None:
        while not self.done:
            await self._next()

    def close(self) -> None:
        self.splice.close()
        for each in self._sockets:
            each.close()

    async def _next(self) -> None:
        async with asyncio.timeout(_DEADLINE_S):
            await self._happened.wait()
        self._happened.clear()

    def _done(self, count: int) -> None:
        self.done.append(count)
        self._happened.set()

    def _failed(self, reason: DisconnectCause) -> None:
        self.failures.append(reason)
        self.splice.close()
        self._happened.set()


@asynccontextmanager
async def _spliced(pipes: Pipes | None = None) -> AsyncIterator[_Spliced]:
    pipes = pipes or Pipes()
    spliced = _Spliced(pipes)
    try:
        yield spliced
    finally:
        spliced.close()
        pipes.close()


def _descriptor_count() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _received(far: socket.socket, count: int) -> bytes:
    received = bytearray()
    async with asyncio.timeout(_DEADLINE_S):
        while len(received) < count:
            received += await asyncio.get_running_loop().sock_recv(far, 1 << 20)
    return bytes(received)


def test_begin_when_the_bytes_are_there_then_they_go_at_once() -> None:
    async def act() -> None:
        async with _spliced() as spliced:
            spliced.far_broker.send(b"records")

            spliced.splice.begin(7)

            assert spliced.done == [7]
            assert not spliced.splice.is_running
            assert spliced.far_client.recv(100) == b"records"

    asyncio.run(act())


def test_begin_when_more_is_there_then_leaves_the_rest() -> None:
    async def act() -> None:
        async with _spliced() as spliced:
            spliced.far_broker.send(b"records, and the next answer")

            spliced.splice.begin(7)

            assert spliced.far_client.recv(100) == b"records"

    asyncio.run(act())


def test_begin_when_the_client_takes_it_slowly_then_it_gets_all_in_order() -> None:
    async def act() -> None:
        sent = os.urandom(_LARGE_BYTES)
        async with _spliced() as spliced, asyncio.TaskGroup() as tasks:
            loop = asyncio.get_running_loop()
            tasks.create_task(loop.sock_sendall(spliced.far_broker, sent))

            spliced.splice.begin(_LARGE_BYTES)

            assert spliced.splice.is_running
            assert await _received(spliced.far_client, _LARGE_BYTES) == sent
            await spliced.until_done()
            assert spliced.done == [_LARGE_BYTES]

    asyncio.run(act())


def test_begin_when_the_broker_ends_within_then_says_so_once_all_before_was_sent() -> None:
    async def act() -> None:
        async with _spliced() as spliced:
            spliced.splice.begin(100)
            spliced.far_broker.send(b"a part")
            spliced.far_broker.close()

            await spliced.until_failed()

            assert spliced.failures == [DisconnectCause.BROKER_CLOSED]
            assert spliced.done == []
            assert spliced.far_client.recv(100) == b"a part"

    asyncio.run(act())


def test_begin_when_the_client_is_gone_then_says_so() -> None:
    async def act() -> None:
        async with _spliced() as spliced:
            spliced.far_client.close()
            spliced.far_broker.send(b"records")

            spliced.splice.begin(7)

            assert spliced.failures == [DisconnectCause.CLIENT_LEFT]

    asyncio.run(act())


def test_close_when_bytes_are_under_way_then_the_next_connection_does_not_get_them() -> None:
    async def act() -> None:
        pipes = Pipes()
        async with _spliced(pipes) as spliced:
            loop = asyncio.get_running_loop()
            sending = loop.create_task(loop.sock_sendall(spliced.far_broker, bytes(_LARGE_BYTES)))
            spliced.splice.begin(_LARGE_BYTES)
            spliced.splice.close()
            sending.cancel()

            other = _Spliced(pipes)
            other.far_broker.send(b"others")
            other.splice.begin(6)

            assert other.far_client.recv(100) == b"others"
            other.close()

    asyncio.run(act())


def test_begin_when_there_are_no_descriptors_left_then_nothing_begins() -> None:
    class NoPipes(Pipes):
        def take(self) -> Pipe | None:
            return None

    async def act() -> None:
        async with _spliced(NoPipes()) as spliced:
            spliced.far_broker.send(b"records")

            spliced.splice.begin(7)

            assert not spliced.splice.is_running
            assert spliced.done == []

    asyncio.run(act())


def test_begin_when_it_was_done_then_holds_no_descriptors_but_the_pipe_that_is_kept() -> None:
    async def act() -> None:
        async with _spliced() as spliced:
            spliced.far_broker.send(b"records")
            spliced.splice.begin(7)
            held_count = _descriptor_count()

            spliced.far_broker.send(b"records")
            spliced.splice.begin(7)

            assert _descriptor_count() == held_count

    asyncio.run(act())
