"""ResponseRounds: spreads responses from the store over the loop's iterations.

A response from the store takes the loop ten times as long as relaying one from the broker. If
several readers wait, each iteration sends one response from the store, in order of arrival. Clients
that read from the broker meanwhile wait for one such response, not for all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable


class ResponseRounds:
    """The delayed responses of one loop, which calls all methods. Memory: an entry for each."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_given = False
        self._last_reader: Hashable = None

    def may_give(self, reader: Hashable) -> bool:
        """Return whether a response to that reader may be sent now; if not, the caller may `wait`.

        A further response to the reader of the last one does not use up the iteration, because
        usually no other reader waits.
        """
        if self._is_given or self._waiting:
            return False
        if reader != self._last_reader:
            self._last_reader = reader
            self._is_given = True
            asyncio.get_running_loop().call_soon(self._next)
        return True

    def wait(self, give: Callable[[], None]) -> None:
        """Send a response in an iteration of its own, after `may_give` returned False."""
        self._waiting.append(give)

    def _next(self) -> None:
        self._is_given = bool(self._waiting)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
            self._waiting.popleft()()
