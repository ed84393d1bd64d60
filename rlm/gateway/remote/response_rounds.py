"""Spreads responses from the store over the loop's iterations.

The loop needs ten times as long for a response from the store as to relay one from the broker. If
several readers wait, each iteration sends one response from the store, in order of arrival. Clients
that read from the broker meanwhile wait for one such response, not for all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable


class ResponseRounds:
    """Represents the delayed responses of one loop. Call all methods on that loop.

    Memory: one entry for each delayed response.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_given = False
        self._last_reader: Hashable = None

    def may_give(self, reader: Hashable) -> bool:
        """Return whether a response to that reader may be sent now; if not, the caller may `wait`.

        A further response to the same reader does not use up the iteration, because usually no
        other reader waits.
        """
        if self._is_given or self._waiting:
            return False
        if reader != self._last_reader:
            self._last_reader = reader
            self._is_given = True
            asyncio.get_running_loop().call_soon(self._next)
        return True

    def wait(self, give: Callable[[], None]) -> None:
        """Send a response in a later iteration. Call this only after `may_give` returned False."""
        self._waiting.append(give)

    def _next(self) -> None:
        self._is_given = bool(self._waiting)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
            self._waiting.popleft()()
