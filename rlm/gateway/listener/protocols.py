"""Passes the asyncio events of a relayed connection's two sides to the relay.

All connections of a loop receive into one shared buffer. The relay processes the bytes before the
loop receives more, so an idle connection needs no receive buffer.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from rlm.gateway.listener.open_transports import OpenTransports
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.relay.relay import Relay
from rlm.gateway.relay.socket_tuning import limit_send_buffer, pace_by_distance

RECEIVE_BYTES = 256 * 1024
HIGH_WATER_BYTES = 512 * 1024


class _Side(asyncio.BufferedProtocol):
    def __init__(self, buffer: memoryview, transports: OpenTransports) -> None:
        self._buffer = buffer
        self._transports = transports
        self._transport: asyncio.Transport | None = None
        self.relay: Relay | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._transports.add(transport)
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        connected: socket.socket | None = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            pace_by_distance(connected)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transports.remove(self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer


class ClientSide(_Side):
    """Represents the downstream protocol.

    `accepted` returns the relay of a new connection; None if the server refuses the client.
    """

    def __init__(
        self,
        buffer: memoryview,
        transports: OpenTransports,
        accepted: Callable[[asyncio.Transport], Relay | None],
    ) -> None:
        super().__init__(buffer, transports)
        self._accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        connected: socket.socket | None = transport.get_extra_info("socket")
        if connected is not None:
            limit_send_buffer(connected)
        self.relay = self._accepted(transport)

    def buffer_updated(self, nbytes: int) -> None:
        if self.relay is not None:
            self.relay.receive_from_client(self._buffer[:nbytes])

    def pause_writing(self) -> None:
        if self.relay is not None:
            self.relay.set_client_full(is_full=True)

    def resume_writing(self) -> None:
        if self.relay is not None:
            self.relay.set_client_full(is_full=False)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.relay is not None:
            self.relay.close(DisconnectCause.CLIENT_LEFT)


class BrokerSide(_Side):
    """Represents the upstream protocol."""

    def __init__(self, buffer: memoryview, transports: OpenTransports, relay: Relay) -> None:
        super().__init__(buffer, transports)
        self._relay = relay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self._relay.start(transport)

    def buffer_updated(self, nbytes: int) -> None:
        self._relay.receive_from_broker(self._buffer[:nbytes])

    def pause_writing(self) -> None:
        self._relay.set_broker_full(is_full=True)

    def resume_writing(self) -> None:
        self._relay.set_broker_full(is_full=False)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._relay.close(DisconnectCause.BROKER_CLOSED)
