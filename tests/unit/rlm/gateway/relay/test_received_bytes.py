from __future__ import annotations

import asyncio
import socket

from rlm.gateway.relay.received_bytes import write_received

_MORE_THAN_A_SOCKET_TAKES = 8 << 20


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
