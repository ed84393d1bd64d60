"""A gateway's server on the loopback interface between one client and a scripted broker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

from rlm.config.values import HostPort
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.listener.server import GatewayParts, GatewayServer
from rlm.gateway.model.counters import GatewayCounts
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from tests.log_dir_builder import ManualClock
from tests.unit.rlm.gateway.session_world import SessionWorld

_DEADLINE_S = 10.0
_LOOPBACK = "127.0.0.1"


class NothingStored:
    """A store that nobody reads."""

    def forget(self, client: int) -> None:
        """Do nothing: nothing is kept for a client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One end of a connection that leads to the gateway. All waits are bounded."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        """Send without waiting until the other side receives it."""
        self.writer.write(data)

    async def receive(self, count: int) -> bytes:
        """Return this number of received bytes."""
        async with asyncio.timeout(_DEADLINE_S):
            return await self.reader.readexactly(count)

    async def receive_to_end(self) -> bytes:
        """Return all bytes up to the connection's end, also if it was reset."""
        received = bytearray()
        async with asyncio.timeout(_DEADLINE_S):
            try:
                while data := await self.reader.read(1 << 16):
                    received += data
            except ConnectionError:
                pass
        return bytes(received)

    def leave(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayWorld:
    """A relay between a client and a broker, as a test uses it."""

    client: Side
    broker: Side
    server: GatewayServer
    counts: GatewayCounts


@asynccontextmanager
async def relay_world(
    change: Callable[[GatewayParts], GatewayParts] = lambda parts: parts,
    *,
    listener: socket.socket | None = None,
) -> AsyncIterator[RelayWorld]:
    """Connect one client to the broker through a gateway with these parts.

    The gateway owns `listener`, by default a socket at a free port.
    """
    at_broker: asyncio.Queue[Side] = asyncio.Queue()
    broker = await asyncio.start_server(
        lambda reader, writer: at_broker.put_nowait(Side(reader=reader, writer=writer)),
        _LOOPBACK,
        0,
    )
    upstream = HostPort(host=_LOOPBACK, port=broker.sockets[0].getsockname()[1])
    with ThreadPoolExecutor(1) as pool:
        parts = change(gateway_parts(pool))
        server = GatewayServer(parts)
        server.start()
        listener = listener or socket.create_server((_LOOPBACK, 0))
        port = listener.getsockname()[1]
        await server.open(Endpoint(name="broker", listener=listener, upstreams=lambda: (upstream,)))
        reader, writer = await asyncio.open_connection(_LOOPBACK, port)
        client = Side(reader=reader, writer=writer)
        async with asyncio.timeout(_DEADLINE_S):
            world = RelayWorld(
                client=client, broker=await at_broker.get(), server=server, counts=parts.counts
            )
        try:
            yield world
        finally:
            await server.stop()
            for side in (world.client, world.broker):
                side.leave()
            broker.close()
            await broker.wait_closed()


def gateway_parts(pool: ThreadPoolExecutor) -> GatewayParts:
    """Return the parts of a gateway that reads nothing from a store."""
    clock = ManualClock()
    return GatewayParts(
        session=SessionWorld().parts,
        tier=cast(RemotePartitionReader, NothingStored()),
        pool=pool,
        rewrite_pools=RewritePools(store=pool, others=pool),
        permits=ReadPermits(
            quota=FetchQuota(FetchQuotaSettings(), clock.monotonic_ms()),
            slot_count=1,
            clock=clock,
        ),
    )
