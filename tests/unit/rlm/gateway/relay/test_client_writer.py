"""Bytes sent to a client: in order, in large pieces, and only as it receives them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from rlm.gateway.model.actions import ResponseToClient
from rlm.gateway.relay.client_writer import ClientOutput, write_received

_LARGE = b"x" * 600_000
_MORE_THAN_A_SOCKET_TAKES = 8 << 20


class _Transport(asyncio.Transport):
    """A transport that can be full after every write."""

    def __init__(self, *, fills: bool = False) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.fills = fills
        self.buffered_bytes = 0
        self.output = ClientOutput(self)

    def get_write_buffer_size(self) -> int:
        return self.buffered_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if self.fills:
            self.output.pause()


def test_answer_when_it_has_small_parts_then_they_leave_as_one() -> None:
    transport = _Transport()
    released: list[bool] = []

    transport.output.respond(
        ResponseToClient(
            parts=[b"a", b"b", _LARGE[:20_000], b"c"], release=lambda: released.append(True)
        )
    )

    assert [len(each) for each in transport.written] == [2, 20_000, 1]
    assert released == [True]


def test_answer_when_the_client_is_slow_then_is_released_only_when_all_of_it_was_taken() -> None:
    transport = _Transport(fills=True)
    released: list[bool] = []
    transport.output.respond(
        ResponseToClient(parts=[_LARGE], release=lambda: released.append(True))
    )
    assert transport.output.is_blocked
    assert sum(map(len, transport.written)) < len(_LARGE)
    assert released == []

    while transport.output.is_blocked:
        transport.output.resume()

    assert b"".join(transport.written) == _LARGE
    assert released == [True]


def test_write_when_an_answer_waits_then_comes_after_it_whatever_becomes_of_the_buffer() -> None:
    transport = _Transport(fills=True)
    transport.output.respond(ResponseToClient(parts=[_LARGE], release=lambda: None))
    buffer = bytearray(b"behind")

    transport.output.write(memoryview(buffer))
    buffer[:] = b"reused"
    while transport.output.is_blocked:
        transport.output.resume()

    assert b"".join(transport.written) == _LARGE + b"behind"


def test_drop_when_an_answer_waits_then_releases_it() -> None:
    transport = _Transport(fills=True)
    released: list[bool] = []
    transport.output.respond(
        ResponseToClient(parts=[_LARGE], release=lambda: released.append(True))
    )

    transport.output.drop()

    assert released == [True]


class _Direct:
    """A writer with direct access to the client's socket, and its results."""

    def __init__(self) -> None:
        self.ours, self.client = socket.socketpair()
        self.ours.setblocking(False)  # noqa: FBT003 - the socket's own way
        self.events: list[str] = []
        self.transport = _Transport()
        self.output = ClientOutput(
            self.transport,
            client=self.ours,
            moved=lambda: self.events.append("moved"),
            failed=lambda: self.events.append("failed"),
        )

    def answer(self, *parts: bytes) -> None:
        self.output.respond(
            ResponseToClient(parts=list(parts), release=lambda: self.events.append("released"))
        )

    async def received(self, count: int) -> bytes:
        loop = asyncio.get_running_loop()
        self.client.setblocking(False)  # noqa: FBT003 - the socket's own way
        content = bytearray()
        async with asyncio.timeout(10):
            while len(content) < count:
                content += await loop.sock_recv(self.client, 1 << 20)
        return bytes(content)


def _run(act: Callable[[_Direct], Awaitable[None]]) -> None:
    async def run() -> None:
        direct = _Direct()
        with direct.ours, direct.client:
            await act(direct)

    asyncio.run(run())


def test_answer_when_the_socket_may_be_written_to_then_bypasses_the_transport() -> None:
    async def act(direct: _Direct) -> None:
        direct.answer(b"head", b"tail")

        assert direct.events == ["released"]
        assert not direct.output.is_blocked
        assert await direct.received(8) == b"headtail"
        assert direct.transport.written == []

    _run(act)


def test_answer_when_the_socket_takes_no_more_then_the_rest_follows_in_order() -> None:
    large = [bytes([number]) * 700_000 for number in range(8)]

    async def act(direct: _Direct) -> None:
        direct.answer(b"head", *large, b"tail")
        buffer = bytearray(b"behind")
        direct.output.write(memoryview(buffer))
        buffer[:] = b"reused"
        assert direct.output.is_blocked
        assert direct.events == []

        expected = b"head" + b"".join(large) + b"tail" + b"behind"
        assert await direct.received(len(expected)) == expected

        assert not direct.output.is_blocked
        assert direct.events.count("released") == 1
        assert direct.events[-1] == "moved"

    _run(act)


def test_answer_when_the_transport_still_has_something_then_uses_it() -> None:
    async def act(direct: _Direct) -> None:
        direct.transport.buffered_bytes = 1
        direct.answer(b"after it")

        assert direct.transport.written == [b"after it"]

    _run(act)


def test_answer_when_the_client_has_left_then_reported_and_released() -> None:
    """Scenario 59."""

    async def act(direct: _Direct) -> None:
        direct.client.close()

        direct.answer(_LARGE)

        assert direct.events == ["released", "failed"]
        assert not direct.output.is_blocked

    _run(act)


def test_drop_when_the_socket_is_awaited_then_no_more() -> None:
    async def act(direct: _Direct) -> None:
        direct.answer(*[_LARGE] * 10)
        assert direct.output.is_blocked

        direct.output.drop()

        await asyncio.sleep(0)
        assert direct.events == ["released"]
        assert not direct.output.is_blocked

    _run(act)


def test_write_received_when_the_socket_is_full_then_the_buffer_may_be_used_again() -> None:
    asyncio.run(_write_and_overwrite())


async def _write_and_overwrite() -> None:
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    far.settimeout(0)
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=near)
    buffer = bytearray(b"\x01" * _MORE_THAN_A_SOCKET_TAKES)

    write_received(transport, memoryview(buffer))
    assert transport.get_write_buffer_size()
    buffer[:] = b"\x02" * _MORE_THAN_A_SOCKET_TAKES

    received = b""
    while len(received) < _MORE_THAN_A_SOCKET_TAKES:
        received += await loop.sock_recv(far, 1 << 20)
    assert received == b"\x01" * _MORE_THAN_A_SOCKET_TAKES
    transport.close()
    far.close()
