"""Bytes by client id, with a bounded number of ids. Pure."""

from __future__ import annotations

from collections.abc import Mapping

OTHER = "other"
_LONGEST_ID = 100


class ClientBytes:
    """What each client id was given; not thread-safe.

    `limit_count` ids are told apart. A further one takes the place of that which has read longest
    ago, if that is `idle_ms` past; else it counts as OTHER. So no count ever falls.
    """

    def __init__(self, *, limit_count: int = 100, idle_ms: int = 600_000) -> None:
        self._limit_count = limit_count
        self._idle_ms = idle_ms
        self._sizes: dict[str, int] = {}
        self._seen_ms: dict[str, int] = {}
        self._other_bytes = 0

    def add(self, client_id: str, size_bytes: int, now_ms: int) -> None:
        """A client of this id was given so much."""
        client_id = client_id[:_LONGEST_ID]
        if client_id not in self._sizes and not self._has_room(now_ms):
            self._other_bytes += size_bytes
            return
        self._sizes[client_id] = self._sizes.get(client_id, 0) + size_bytes
        # Moved to the end: the first is always the one that has read longest ago.
        self._seen_ms.pop(client_id, None)
        self._seen_ms[client_id] = now_ms

    def sizes(self) -> Mapping[str, int]:
        """Bytes by client id; OTHER is all that could not be told apart. Any thread may call it."""
        sizes = self._sizes.copy()
        sizes[OTHER] = sizes.get(OTHER, 0) + self._other_bytes
        return sizes

    def _has_room(self, now_ms: int) -> bool:
        if len(self._sizes) < self._limit_count:
            return True
        first = next(iter(self._seen_ms))
        if now_ms - self._seen_ms[first] < self._idle_ms:
            return False
        del self._seen_ms[first]
        del self._sizes[first]
        return True
