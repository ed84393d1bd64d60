"""Accepts TLS clients, and connects each to its protocol after the handshake.

The whole handshake has one deadline, which also ends half-open and very slow connections.
A connection counts against the connection limits even before its handshake.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from rlm.gateway.listener.connection_limits import ConnectionSlot
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rsm.segment.log_line import LogLine

# How long asyncio waits for the peer's close_notify.
SHUTDOWN_S = 5.0
_ACCEPT_PAUSE_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsAcceptorCallbacks:
    """Represents the functions that an acceptor calls on its loop.

    `context` returns the TLS context of a new connection. `protocol` returns the protocol of a
    connection after its handshake. `enter` takes a slot for an address; it returns the disconnect
    cause if the connection is refused. If the handshake fails, the acceptor releases the slot;
    otherwise the protocol owns the slot. The acceptor calls `failed` for each refused connection
    and each failed handshake.
    """

    context: Callable[[], ssl.SSLContext]
    protocol: Callable[[ConnectionSlot], asyncio.BaseProtocol]
    enter: Callable[[str], ConnectionSlot | DisconnectCause]
    failed: Callable[[DisconnectCause, str], None]
    handshake_timeout_ms: int


class TlsAcceptor:
    """Represents the acceptor of one listening socket. Use on one loop."""

    def __init__(self, listener: socket.socket, accepting: TlsAcceptorCallbacks) -> None:
        """`listener` is a bound socket; `close` closes it."""
        self._listener = listener
        self._accepting = accepting
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepts: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen and accept. Raises OSError if the socket cannot listen."""
        self._listener.setblocking(False)  # noqa: FBT003 - positional only
        self._listener.listen(socket.SOMAXCONN)
        self._accepts = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Stop accepting and cancel handshakes. Idempotent."""
        for task in self._tasks():
            task.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait, after `close`, until all handshakes have ended."""
        await asyncio.gather(*self._tasks(), return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [*self._handshakes, *([] if self._accepts is None else [self._accepts])]

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError as error:  # For example, too many files are open.
                _log.warning(LogLine("cannot accept a client", error=error))
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            entered = self._accepting.enter(str(address[0]))
            if isinstance(entered, DisconnectCause):
                accepted.close()
                self._accepting.failed(entered, f"address={address[0]}")
            else:
                self._begin(accepted, entered)
            await asyncio.sleep(0)  # A burst of clients must not block other connections.

    def _begin(self, accepted: socket.socket, slot: ConnectionSlot) -> None:
        def end(ended: asyncio.Task[None]) -> None:
            self._handshakes.discard(ended)
            # The task may have been canceled before it ran.
            error = None if ended.cancelled() else ended.exception()
            if ended.cancelled() or error is not None:
                accepted.close()
                slot.leave()
            if error is not None:
                raise error  # The event loop logs it.

        task = asyncio.get_running_loop().create_task(self._shake_hands(accepted, slot))
        self._handshakes.add(task)
        task.add_done_callback(end)

    async def _shake_hands(self, accepted: socket.socket, slot: ConnectionSlot) -> None:
        timeout_s = self._accepting.handshake_timeout_ms / 1000
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._accepting.protocol(slot),
                accepted,
                ssl=self._accepting.context(),
                ssl_handshake_timeout=timeout_s,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
        except ConnectionAbortedError:
            self._fail(slot, DisconnectCause.TLS_HANDSHAKE_TIMEOUT, "")
        except ssl.SSLError as error:
            self._fail(slot, DisconnectCause.TLS_HANDSHAKE_FAILED, f"error={error}")
        except OSError:
            self._fail(slot, DisconnectCause.CLIENT_LEFT, "")

    def _fail(self, slot: ConnectionSlot, reason: DisconnectCause, detail: str) -> None:
        slot.leave()
        self._accepting.failed(reason, detail)
