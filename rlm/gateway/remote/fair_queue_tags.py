"""FairQueueTags: which client is next, so that all receive the same amount. Pure.

Start-time fair queueing: a fetch is tagged with what its client received so far, and the lowest tag
is next. An idle client returns at the tag of the others, so it cannot save up permits.
"""

from __future__ import annotations

from collections.abc import Hashable


class FairQueueTags:
    """The clients' tags. Not thread-safe.

    Memory: an entry for each connected client that received bytes.
    """

    def __init__(self) -> None:
        self._reached = 0
        self._served: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._served)

    def tag(self, client: Hashable) -> int:
        """Return the tag of a client's request now."""
        return max(self._reached, self._served.get(client, 0))

    def started(self, tag: int) -> None:
        """Record that a fetch with this tag starts."""
        self._reached = max(self._reached, tag)

    def served(self, client: Hashable, size_bytes: int) -> None:
        """Record that a client received `size_bytes`."""
        if size_bytes > 0:
            self._served[client] = self.tag(client) + size_bytes

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client. Idempotent."""
        self._served.pop(client, None)
