"""GatewayServer: accepts clients at its doors, each of which has a broker of its own behind it.

A client gets a connection of its own to the broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from rlm.config.values import HostPort
from rlm.gateway.close_reason import CloseReason
from rlm.gateway.connection_sides import RECEIVE_BYTES, BrokerSide, ClientSide
from rlm.gateway.counts import GatewayCounts
from rlm.gateway.door import Door
from rlm.gateway.relay import Relay
from rlm.gateway.remote_reads import RemoteReads
from rlm.gateway.session import Session
from rlm.gateway.session_parts import SessionParts
from rlm.gateway.tier_reader import TierReader

_log = logging.getLogger(__name__)

_QUIET_REASONS = frozenset({CloseReason.CLIENT_LEFT, CloseReason.BROKER_CLOSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """How many connections, and when one is given up.

    One ends after `idle_ms` without a byte in either direction, which is behind the time after
    which brokers end it themselves.
    """

    connection_count: int = 10_000
    connect_timeout_ms: int = 10_000
    idle_ms: int = 660_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts:
    """`pool` runs what may block, for at most as many clients at once as it has threads."""

    session: SessionParts
    tier: TierReader
    pool: Executor
    limits: ServerLimits = field(default_factory=ServerLimits)
    counts: GatewayCounts = field(default_factory=GatewayCounts)


class GatewayServer:
    """Serves on one loop: all methods are to be called there."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._relays: dict[int, Relay] = {}
        self._next_number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._doors: dict[Door, asyncio.Server] = {}

    def start(self) -> None:
        """Look after the connections from now on."""
        self._begin(self._end_idle())

    async def open(self, door: Door) -> None:
        """Accept clients at a door. Raises OSError, and then closes its socket."""
        try:
            self._doors[door] = await self._listen(door)
        except OSError:
            door.listener.close()
            raise

    def close(self, door: Door) -> None:
        """Accept nobody there any more; who came in stays."""
        if door in self._doors:
            self._doors.pop(door).close()

    async def stop(self) -> None:
        """Accept no more, end all connections."""
        for door in tuple(self._doors):
            self.close(door)
        relays = tuple(self._relays.values())
        for relay in relays:
            relay.close(CloseReason.STOPPING)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for relay in relays:
            await relay.ended()

    async def _listen(self, door: Door) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(
            lambda: ClientSide(self._buffer, lambda client: self._accept(door, client)),
            sock=door.listener,
        )

    def _accept(self, door: Door, client: asyncio.Transport) -> Relay | None:
        if len(self._relays) >= self._parts.limits.connection_count:
            self._parts.counts.closed[CloseReason.TOO_MANY_CONNECTIONS] += 1
            client.abort()
            return None
        number = self._next_number
        self._next_number += 1
        relay = Relay(
            Session(self._parts.session),
            reads=RemoteReads(self._parts.tier, self._parts.pool, self._parts.counts, number),
            pool=self._parts.pool,
            context=self._parts.session.context,
            client=client,
            closed=lambda reason, detail: self._closed(number, reason, detail),
        )
        self._relays[number] = relay
        self._parts.counts.connections = len(self._relays)
        self._begin(self._connect(relay, door.name, door.upstreams()))
        return relay

    async def _connect(self, relay: Relay, door: str, upstreams: Sequence[HostPort]) -> None:
        """To the first that answers."""
        loop = asyncio.get_running_loop()
        failures: list[str] = []
        for upstream in upstreams:
            # All together have the time that one would have.
            timeout_s = self._parts.limits.connect_timeout_ms / 1000 / len(upstreams)
            try:
                async with asyncio.timeout(timeout_s):
                    await loop.create_connection(
                        lambda: BrokerSide(self._buffer, relay), upstream.host, upstream.port
                    )
                return
            except TimeoutError:
                failures.append(f"upstream={upstream} error=timeout")
            except OSError as error:
                failures.append(f"upstream={upstream} error={error}")
        detail = " ".join([f"door={door}", *(failures or ["no live broker"])])
        relay.close(CloseReason.BROKER_UNREACHABLE, detail)

    def _closed(self, number: int, reason: CloseReason, detail: str) -> None:
        del self._relays[number]
        self._parts.counts.connections = len(self._relays)
        self._parts.counts.closed[reason] += 1
        if reason not in _QUIET_REASONS:
            _log.info("a client's connection was ended reason=%s %s", reason.value, detail)

    async def _end_idle(self) -> None:
        """End the connections on which nothing happens, now and then."""
        loop = asyncio.get_running_loop()
        idle_s = self._parts.limits.idle_ms / 1000
        while True:
            await asyncio.sleep(idle_s / 4)
            for relay in tuple(self._relays.values()):
                if loop.time() - relay.active_s > idle_s:
                    relay.close(CloseReason.IDLE)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
