"""Requests that wait until their client has received its responses, and when they continue."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

from rlm.gateway.fetch.remote_result import ReadThrottled, RemoteOutcome
from rlm.gateway.listener.open_transports import OpenTransports
from rlm.gateway.listener.protocols import BrokerSide, ClientSide
from rlm.gateway.model.actions import PrefetchHint, RemoteFetch
from rlm.gateway.relay.pipes import Pipes
from rlm.gateway.relay.relay import Relay
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.remote.remote_fetches import RemoteFetches
from rlm.gateway.remote.response_rounds import ResponseRounds
from rlm.gateway.session.session import Session
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.produce import PRODUCE, ProduceRequest
from tests.unit.rlm.gateway.fetch.fetch_messages import (
    ALL_ENDS,
    TRIMMED,
    answer_of,
    fetch_of,
    out_of_range_row,
    slice_of,
)
from tests.unit.rlm.gateway.session_world import TIERED, SessionWorld, request, response

_MORE_THAN_SOCKETS_HOLD = 6 << 20
_FETCH = request(FETCH, 13, fetch_of(13, 50))
_PRODUCE = request(PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1))
_LACKED = ALL_ENDS + response(FETCH, 13, answer_of(13, out_of_range_row(0)))


class _Reads:
    """Reads of the store, which a test answers."""

    def __init__(self) -> None:
        self.answers: list[asyncio.Future[list[RemoteOutcome]]] = []
        self._asked = asyncio.Event()

    def read_now(self, _wanted: RemoteFetch) -> None:
        """Return nothing: no data is in memory."""

    def expect(self, _expected: PrefetchHint) -> None:
        """Do nothing: nothing is prefetched."""

    def close(self) -> None:
        """Do nothing: nothing is kept for the client."""

    async def read(self, _wanted: RemoteFetch) -> list[RemoteOutcome]:
        self.answers.append(asyncio.get_running_loop().create_future())
        self._asked.set()
        return await self.answers[-1]

    async def asked(self, count: int) -> None:
        """Wait until the session has requested this number of reads."""
        async with asyncio.timeout(10):
            while len(self.answers) < count:
                await self._asked.wait()
                self._asked.clear()


@asynccontextmanager
async def _relayed(reads: _Reads) -> AsyncIterator[tuple[socket.socket, socket.socket, Relay]]:
    """Yield the client's and the broker's socket, and the relay between them."""
    loop, buffer, transports = (
        asyncio.get_running_loop(),
        memoryview(bytearray(1 << 18)),
        OpenTransports(),
    )
    (ours, client), (broker, theirs) = _connected(), _connected()
    made: list[Relay] = []

    def accepted(transport: asyncio.Transport) -> Relay:
        made.append(
            Relay(
                Session(SessionWorld(facts={TIERED: TRIMMED}).parts),
                reads=cast(RemoteFetches, reads),
                rounds=ResponseRounds(),
                pools=RewritePools(store=pool, others=pool),
                context=lambda: None,  # type: ignore[arg-type, return-value]  # nothing is rewritten
                client=transport,
                pipes=Pipes(),
                closed=lambda _reason, _detail: None,
            )
        )
        return made[0]

    with ThreadPoolExecutor(1) as pool, client, broker:
        for each in (client, broker):
            each.setblocking(False)  # noqa: FBT003 - positional only
        client_end, _ = await loop.create_connection(
            lambda: ClientSide(buffer, transports, accepted), sock=ours
        )
        broker_end, _ = await loop.create_connection(
            lambda: BrokerSide(buffer, transports, made[0]), sock=theirs
        )
        yield client, broker, made[0]
        client_end.abort()
        broker_end.abort()
        await asyncio.sleep(0)


def _connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        return accepted, far


async def _give_large(
    reads: _Reads, client: socket.socket, broker: socket.socket, *, asked: bytes
) -> None:
    """Answer the client's first request with more than the sockets' buffers hold."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, asked)
    await loop.sock_recv(broker, 1 << 16)
    await loop.sock_sendall(broker, _LACKED)
    await reads.asked(1)
    large = (memoryview(bytes(_MORE_THAN_SOCKETS_HOLD)),)
    reads.answers[0].set_result([replace(slice_of(50, 51), buffers=large)])


def _take_all(client: socket.socket) -> int:
    """Receive all bytes that arrive within a moment, while the loop does nothing else."""
    taken_bytes, last_s = 0, time.monotonic()
    while time.monotonic() - last_s < 0.1:
        try:
            taken_bytes += len(client.recv(1 << 20))
            last_s = time.monotonic()
        except BlockingIOError:
            pass
    return taken_bytes


def test_request_when_the_client_takes_all_as_the_next_answer_is_there_then_it_continues() -> None:
    """The next response is sent together with the rest of the one before."""

    async def act() -> None:
        reads = _Reads()
        async with _relayed(reads) as (client, broker, _):
            await _give_large(reads, client, broker, asked=_FETCH * 3)
            await reads.asked(2)  # the third read waits
            assert len(reads.answers) == 2
            _take_all(client)

            reads.answers[1].set_result([ReadThrottled()])

            taken = asyncio.create_task(_taken(client))
            await reads.asked(3)
            taken.cancel()

    asyncio.run(act())


async def _until(holds: Callable[[], bool]) -> None:
    """Wait for a condition that no event reports."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


async def _taken(client: socket.socket) -> None:
    """Receive all bytes that arrive."""
    while await asyncio.get_running_loop().sock_recv(client, 1 << 20):
        pass


def test_request_that_stops_half_way_when_the_client_has_taken_all_then_it_is_read_again() -> None:
    """The client must send the missing bytes, within the limit for them."""

    async def act() -> None:
        loop, reads = asyncio.get_running_loop(), _Reads()
        async with _relayed(reads) as (client, broker, relay):
            # Once the Fetch ends, the gateway begins to handle the incomplete Produce.
            await _give_large(reads, client, broker, asked=_FETCH + _PRODUCE[:-3])
            await _until(lambda: relay.arrival.sent_count is not None)
            await loop.sock_sendall(client, _PRODUCE[-3:-1])
            await asyncio.sleep(0.05)

            taken = asyncio.create_task(_taken(client))
            await _until(lambda: relay.arrival.is_read and relay.arrival.is_partial)
            taken.cancel()

    asyncio.run(act())
