"""FairQueueTags: who is next of those who share something, so that all get the same of it. Pure.

Start-time fair queueing: a client's turn is tagged with what it was given so far, and the lowest
tag is next. Who was away begins where the others are, so that nobody saves up turns.
"""

from __future__ import annotations

from collections.abc import Hashable


class FairQueueTags:
    """Not thread-safe.

    Memory: an entry for each client that was given more than the others and has not gone.
    """

    def __init__(self) -> None:
        self._reached = 0
        self._served: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._served)

    def tag(self, client: Hashable) -> int:
        """Where a client stands that asks now."""
        return max(self._reached, self._served.get(client, 0))

    def started(self, tag: int) -> None:
        """A turn with this tag begins."""
        self._reached = max(self._reached, tag)

    def served(self, client: Hashable, size_bytes: int) -> None:
        """A client's turn has ended with so much for it."""
        if size_bytes > 0:
            self._served[client] = self.tag(client) + size_bytes

    def forget(self, client: Hashable) -> None:
        """A client has gone. Idempotent."""
        self._served.pop(client, None)
