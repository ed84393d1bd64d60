"""Tracks open transports; on shutdown, waits for them to close, then aborts the rest."""

from __future__ import annotations

import asyncio


class OpenTransports:
    """Represents a server's transports, each until `connection_lost`. Use on one loop."""

    def __init__(self) -> None:
        self._open: set[asyncio.Transport] = set()
        self._none_is_open = asyncio.Event()
        self._none_is_open.set()

    def add(self, transport: asyncio.Transport) -> None:
        """Add a connected transport."""
        self._open.add(transport)
        self._none_is_open.clear()

    def remove(self, transport: asyncio.Transport) -> None:
        """Remove a closed transport. Idempotent."""
        self._open.discard(transport)
        if not self._open:
            self._none_is_open.set()

    async def wait_closed(self, *, timeout_s: float) -> None:
        """Wait until all transports have sent their data and closed; abort the rest at the timeout.

        Close the transports before the call. With TLS, a transport that closes waits for the peer's
        close_notify.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._none_is_open.wait()
        except TimeoutError:
            for transport in tuple(self._open):
                transport.abort()
            await asyncio.sleep(0)
