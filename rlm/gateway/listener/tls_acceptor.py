"""Accepts clients that speak TLS: a connection becomes one only after its handshake.

Each handshake has a deadline as a whole, so that half-open connections and those that drip end;
they count among the connections that are allowed, in all and from their address.
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

# Towards whoever does not answer the end of a connection.
SHUTDOWN_S = 5.0
_ACCEPT_PAUSE_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsAcceptorCallbacks:
    """What an acceptor is told, and tells. All is called on the loop.

    `context` gives that of a new connection, `protocol` its protocol, which is connected when the
    handshake is done. `enter` lets in who comes from an address, or says why not; the place is
    given up here if no connection comes about, else it is the protocol's. `failed` is told of each
    connection that did not come about.
    """

    context: Callable[[], ssl.SSLContext]
    protocol: Callable[[ConnectionSlot], asyncio.BaseProtocol]
    enter: Callable[[str], ConnectionSlot | DisconnectCause]
    failed: Callable[[DisconnectCause, str], None]
    handshake_timeout_ms: int


class TlsAcceptor:
    """Of one listening socket, on one loop."""

    def __init__(self, listener: socket.socket, accepting: TlsAcceptorCallbacks) -> None:
        """The socket is bound; it is closed by `close`."""
        self._listener = listener
        self._accepting = accepting
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepts: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Accept from now on. Raises OSError."""
        self._listener.setblocking(False)  # noqa: FBT003 - positional only
        self._listener.listen(socket.SOMAXCONN)
        self._accepts = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more; handshakes end. Idempotent."""
        for task in self._tasks():
            task.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait until nothing of a closed one is under way."""
        await asyncio.gather(*self._tasks(), return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [*self._handshakes, *([] if self._accepts is None else [self._accepts])]

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError as error:  # such as too many open files
                _log.warning("a client cannot be accepted", extra={"error": error})
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            entered = self._accepting.enter(str(address[0]))
            if isinstance(entered, DisconnectCause):
                accepted.close()
                self._accepting.failed(entered, f"address={address[0]}")
            else:
                self._begin(accepted, entered)
            await asyncio.sleep(0)  # a crowd at the endpoint must not stop everybody else

    def _begin(self, accepted: socket.socket, slot: ConnectionSlot) -> None:
        def end(ended: asyncio.Task[None]) -> None:
            self._handshakes.discard(ended)
            if ended.cancelled():
                accepted.close()  # it may have ended before it began
                slot.leave()

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
