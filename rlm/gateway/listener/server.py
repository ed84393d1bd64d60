"""Accepts clients at the gateway's endpoints, and connects each client to a broker."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from rlm.config.values import HostPort
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.listener.connection_limits import ConnectionRoom, ConnectionSlot
from rlm.gateway.listener.open_transports import OpenTransports
from rlm.gateway.listener.protocols import RECEIVE_BYTES, BrokerSide, ClientSide
from rlm.gateway.listener.stray_connections import StrayConnections
from rlm.gateway.listener.tls import requested_name
from rlm.gateway.listener.tls_acceptor import SHUTDOWN_S, TlsAcceptor, TlsAcceptorCallbacks
from rlm.gateway.model.counters import GatewayCounts
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.relay.connection_watch import ConnectionWatch
from rlm.gateway.relay.pipes import Pipes
from rlm.gateway.relay.relay import CLOSE_STRAY_WITHIN_S, Relay
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.relay.socket_tuning import accept_unpaced
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.read_failures import ReadFailures
from rlm.gateway.remote.remote_fetches import RemoteFetches
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.gateway.remote.response_rounds import ResponseRounds
from rlm.gateway.session.session import Session
from rlm.gateway.session.session_state import SessionParts
from rsm.segment.errors import RetriableError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_QUIET_REASONS = frozenset(
    {
        DisconnectCause.CLIENT_LEFT,
        DisconnectCause.BROKER_CLOSED,
        DisconnectCause.TOO_MANY_CONNECTIONS,
        DisconnectCause.TOO_MANY_CONNECTIONS_OF_ADDRESS,
        DisconnectCause.UNUSABLE_ADDRESS,
        DisconnectCause.LED_ELSEWHERE,
    }
)

_LEAVE_S = 2.0
_STRAY_CONNECTIONS_INTERVAL_S = 1.0
_REFUSED_INTERVAL_S = 0.5
_ACCEPTED_AT_ONCE = 8  # A low limit lets processes with the same socket share a burst of clients.
_WAITING_CLIENTS = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Represents the limits of a server's connections, in counts and milliseconds.

    The server closes a connection if no byte passes in either direction for `idle_ms`. The default
    is longer than Kafka's default of `connections.max.idle.ms`. The first request, and each partly
    received request, must be complete within `progress_timeout_ms`. In the same time, a client must
    receive part of its waiting responses. While other clients wait for memory, the limit for that
    is `pressure_timeout_ms`.
    """

    connection_count: int = 10_000
    connection_count_of_address: int = 2**31 - 1
    connect_timeout_ms: int = 10_000
    handshake_timeout_ms: int = 10_000
    progress_timeout_ms: int = 60_000
    pressure_timeout_ms: int = 5_000
    idle_ms: int = 660_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts:
    """Represents the parts that all connections of a server share.

    `pool` starts remote fetches, one per thread; `rewrite_pools` run rewrites.
    `is_under_memory_pressure`: clients wait for memory that unsent responses use. `is_refusing`:
    the server accepts no clients, because clients must not get this gateway's address. `failed`
    counts a failure of a background task. `client_tls` and `upstream_tls` return the TLS contexts
    of new connections; they are None for plain text.
    """

    session: SessionParts
    tier: RemotePartitionReader
    pool: Executor
    rewrite_pools: RewritePools
    permits: ReadPermits
    is_under_memory_pressure: Callable[[], bool] = lambda: False
    is_refusing: Callable[[], bool] = lambda: False
    failed: Callable[[str, Exception], None] = lambda _task, _error: None
    client_tls: Callable[[], ssl.SSLContext] | None = None
    upstream_tls: Callable[[], ssl.SSLContext] | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)
    counts: GatewayCounts = field(default_factory=GatewayCounts)


class GatewayServer:
    """Represents the server of all endpoints of a process. Call all methods on its loop."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._relays: dict[int, Relay] = {}
        self._room = ConnectionRoom(
            limit_count=parts.limits.connection_count,
            limit_count_of_address=parts.limits.connection_count_of_address,
        )
        self._next_number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._endpoints: dict[Endpoint, asyncio.Server | TlsAcceptor] = {}
        self._transports = OpenTransports()
        self._pipes = Pipes()
        self._rounds = ResponseRounds()
        self._failures = ReadFailures(parts.session.clock)

    def start(self) -> None:
        """Start the tasks that close overdue, stray and refused connections."""
        self._begin(self._end_overdue())
        self._begin(self._close_stray_connections())
        self._begin(self._end_refused())

    async def open(self, endpoint: Endpoint) -> None:
        """Accept clients at an endpoint; on failure, close its socket and raise OSError."""
        accept_unpaced(endpoint.listener)
        try:
            self._endpoints[endpoint] = await self._listen(endpoint)
        except OSError:
            endpoint.listener.close()
            raise

    def close(self, endpoint: Endpoint) -> None:
        """Stop accepting clients at an endpoint; its open connections continue."""
        if endpoint in self._endpoints:
            self._endpoints.pop(endpoint).close()

    async def stop(self) -> None:
        """Stop accepting clients, then close all connections."""
        acceptors = tuple(self._endpoints.values())
        for endpoint in tuple(self._endpoints):
            self.close(endpoint)
        relays = tuple(self._relays.values())
        for relay in relays:
            relay.close(DisconnectCause.STOPPING)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for relay in relays:
            await relay.wait_closed()
        for acceptor in acceptors:
            await acceptor.wait_closed()
        await self._transports.wait_closed(timeout_s=_LEAVE_S)
        self._pipes.close()

    async def _listen(self, endpoint: Endpoint) -> asyncio.Server | TlsAcceptor:
        def client_side(slot: ConnectionSlot | None = None) -> ClientSide:
            return ClientSide(
                self._buffer, self._transports, lambda client: self._accept(endpoint, client, slot)
            )

        # A socket that refused connections lacks this option (rlm.worker.client_listener).
        endpoint.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._parts.client_tls is None:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(
                client_side, sock=endpoint.listener, backlog=_ACCEPTED_AT_ONCE
            )
            endpoint.listener.listen(_WAITING_CLIENTS)
            return server
        acceptor = self._tls_acceptor(endpoint, client_side, self._parts.client_tls)
        acceptor.start()
        return acceptor

    def _tls_acceptor(
        self,
        endpoint: Endpoint,
        client_side: Callable[[ConnectionSlot], ClientSide],
        context: Callable[[], ssl.SSLContext],
    ) -> TlsAcceptor:
        accepting = TlsAcceptorCallbacks(
            context=context,
            protocol=client_side,
            enter=self._enter,
            failed=self._count_end,
            handshake_timeout_ms=self._parts.limits.handshake_timeout_ms,
        )
        return TlsAcceptor(endpoint.listener, accepting)

    def _accept(
        self, endpoint: Endpoint, client: asyncio.Transport, slot: ConnectionSlot | None
    ) -> Relay | None:
        """Create the relay of a client; return None if the client is refused.

        A TLS client already has its `slot`.
        """
        parts, address = self._parts, _address_of(client)
        parts.counts.accepted += 1
        entered = slot or self._enter(address)
        if isinstance(entered, DisconnectCause):
            self._count_end(entered, f"address={address}")
            client.abort()
            return None
        number = self._next_number
        self._next_number += 1

        def closed(reason: DisconnectCause, detail: str) -> None:
            entered.leave()
            self._forget_relay(number, reason, f"address={address} {detail}")

        relay = Relay(
            Session(parts.session),
            reads=RemoteFetches(
                parts.tier,
                parts.pool,
                parts.permits,
                parts.counts,
                number,
                failures=self._failures,
            ),
            rounds=self._rounds,
            pools=parts.rewrite_pools,
            context=parts.session.context,
            client=client,
            pipes=self._pipes,
            closed=closed,
        )
        self._relays[number] = relay
        parts.counts.connections = len(self._relays)
        self._begin(
            self._connect(relay, endpoint.name, endpoint.upstreams_for(requested_name(client)))
        )
        return relay

    def _enter(self, address: str) -> ConnectionSlot | DisconnectCause:
        if self._parts.is_refusing():
            return DisconnectCause.UNUSABLE_ADDRESS
        return self._room.enter(address)

    async def _connect(self, relay: Relay, endpoint: str, upstreams: Sequence[HostPort]) -> None:
        """Connect to the first upstream that accepts; close the relay if no upstream accepts."""
        failures: list[str] = []
        for upstream in upstreams:
            # The upstreams share one connect timeout.
            timeout_s = self._parts.limits.connect_timeout_ms / 1000 / len(upstreams)
            try:
                async with asyncio.timeout(timeout_s):
                    await _connect_upstream(
                        lambda: BrokerSide(self._buffer, self._transports, relay),
                        upstream,
                        self._parts.upstream_tls,
                    )
                return
            except TimeoutError:
                failures.append(f"upstream={upstream} error=timeout")
            except OSError as error:
                failures.append(f"upstream={upstream} error={error}")
        detail = " ".join([f"endpoint={endpoint}", *(failures or ["no live broker"])])
        relay.close(DisconnectCause.BROKER_UNREACHABLE, detail)

    def _forget_relay(self, number: int, reason: DisconnectCause, detail: str) -> None:
        del self._relays[number]
        self._parts.counts.connections = len(self._relays)
        self._count_end(reason, detail)

    def _count_end(self, reason: DisconnectCause, detail: str) -> None:
        self._parts.counts.closed[reason] += 1
        if reason not in _QUIET_REASONS:
            line = LogLine("closed a client's connection", reason=reason.value, detail=detail)
            _log.info(line)

    async def _end_overdue(self) -> None:
        """Close idle connections, and connections whose client does not send or receive in time."""
        loop = asyncio.get_running_loop()
        limits = self._parts.limits
        watch = ConnectionWatch(
            progress_s=limits.progress_timeout_ms / 1000,
            pressure_progress_s=limits.pressure_timeout_ms / 1000,
            idle_s=limits.idle_ms / 1000,
        )
        usual_s = min(limits.progress_timeout_ms, limits.idle_ms) / 4000
        looked_s = loop.time()

        def look() -> None:
            nonlocal looked_s
            is_under_memory_pressure = self._parts.is_under_memory_pressure()
            if not is_under_memory_pressure and loop.time() - looked_s < usual_s:
                return
            looked_s = loop.time()
            arrivals = {number: relay.arrival for number, relay in self._relays.items()}
            for number, reason in watch.find_overdue(
                arrivals, looked_s, is_under_memory_pressure=is_under_memory_pressure
            ).items():
                self._relays[number].close(reason)

        interval_s = min(usual_s, limits.pressure_timeout_ms / 4000)
        await self._repeat("overdue_connections", look, interval_s=interval_s)

    async def _close_stray_connections(self) -> None:
        """Close stray connections and drop the counts of topics without a policy, each second."""
        loop = asyncio.get_running_loop()
        stray_connections = StrayConnections()

        def look() -> None:
            try:
                context = self._parts.session.context()
            except RetriableError:
                return
            self._parts.counts.retain(context.topics.id_by_name)
            first = stray_connections.find_first_to_close(
                context.topology, next_number=self._next_number, now_s=loop.time()
            )
            if first is not None:
                for number, relay in tuple(self._relays.items()):
                    if number >= first:
                        relay.leave(DisconnectCause.LED_ELSEWHERE, within_s=CLOSE_STRAY_WITHIN_S)

        await self._repeat("stray_connections", look, interval_s=_STRAY_CONNECTIONS_INTERVAL_S)

    async def _end_refused(self) -> None:
        """Close all connections while clients must not get this gateway's address."""

        def look() -> None:
            if self._parts.is_refusing():
                for relay in tuple(self._relays.values()):
                    relay.close(DisconnectCause.UNUSABLE_ADDRESS)

        await self._repeat("refused_connections", look, interval_s=_REFUSED_INTERVAL_S)

    async def _repeat(self, task: str, step: Callable[[], None], *, interval_s: float) -> None:
        """Run `step` at an interval; log and count each failure, and continue."""
        while True:
            await asyncio.sleep(interval_s)
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the task must survive
                _log.exception(LogLine("background task failed", task=task))
                self._parts.failed(task, error)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _address_of(client: asyncio.Transport) -> str:
    peer = client.get_extra_info("peername")
    return str(peer[0]) if peer else ""


async def _connect_upstream(
    protocol: Callable[[], asyncio.BaseProtocol],
    upstream: HostPort,
    tls: Callable[[], ssl.SSLContext] | None,
) -> None:
    """Connect `protocol` to a broker. The caller sets a timeout.

    If the context checks host names, the broker's certificate must name `upstream.host`. Raises
    OSError if the connection or its TLS handshake fails.
    """
    loop = asyncio.get_running_loop()
    if tls is None:
        await loop.create_connection(protocol, upstream.host, upstream.port)
        return
    await loop.create_connection(
        protocol,
        upstream.host,
        upstream.port,
        ssl=tls(),
        server_hostname=upstream.host,
        ssl_shutdown_timeout=SHUTDOWN_S,
    )
