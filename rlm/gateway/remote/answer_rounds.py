"""Answers from the store, spread over the rounds of the loop: what only passes goes in between.

To give one takes the loop ten times as long as to pass on what the broker has. So where several
readers want one, no more than one is given in a round of the loop, in the order in which they came,
and who reads from the broker meanwhile waits for one of them and not for all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable


class AnswerRounds:
    """Of one loop: all methods are to be called there. Memory: an entry for each who waits."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_given = False
        self._last_reader: Hashable = None

    def may_give(self, reader: Hashable) -> bool:
        """Whether an answer to that reader may be given now; if not, it may `wait`.

        Who was given the last one as well may have one more within a round: it mostly is alone.
        """
        if self._is_given or self._waiting:
            return False
        if reader != self._last_reader:
            self._last_reader = reader
            self._is_given = True
            asyncio.get_running_loop().call_soon(self._next)
        return True

    def wait(self, give: Callable[[], None]) -> None:
        """Have an answer given in a round of its own; to be called when it may not be given now."""
        self._waiting.append(give)

    def _next(self) -> None:
        self._is_given = bool(self._waiting)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
            self._waiting.popleft()()
