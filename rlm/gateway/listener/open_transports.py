"""Which transports of a server are not gone yet, and how it takes leave of them."""

from __future__ import annotations

import asyncio


class OpenTransports:
    """On one loop. A transport is added when it is connected, removed when its protocol lost it."""

    def __init__(self) -> None:
        self._open: set[asyncio.Transport] = set()
        self._none_is_open = asyncio.Event()
        self._none_is_open.set()

    def add(self, transport: asyncio.Transport) -> None:
        """It is connected."""
        self._open.add(transport)
        self._none_is_open.clear()

    def remove(self, transport: asyncio.Transport) -> None:
        """It is gone."""
        self._open.discard(transport)
        if not self._open:
            self._none_is_open.set()

    async def gone(self, *, timeout_s: float) -> None:
        """Wait until all are gone, after they were closed: what was written is sent before that.

        With TLS both sides take leave of each other; whoever does not within the time is cut off.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._none_is_open.wait()
        except TimeoutError:
            for transport in tuple(self._open):
                transport.abort()
            await asyncio.sleep(0)
