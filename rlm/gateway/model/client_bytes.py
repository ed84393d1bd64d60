"""ClientBytes: bytes by client id, for a limited number of ids. Pure."""

from __future__ import annotations

from collections.abc import Mapping

OTHER = "other"
_LONGEST_ID = 100


class ClientBytes:
    """The bytes that each client id received. Not thread-safe.

    It counts `limit_count` ids separately. A further id replaces the one idle for longest, if that
    is idle for `idle_ms`; otherwise it counts as OTHER. No count ever decreases.
    """

    def __init__(self, *, limit_count: int = 100, idle_ms: int = 600_000) -> None:
        self._limit_count = limit_count
        self._idle_ms = idle_ms
        self._sizes: dict[str, int] = {}
        self._seen_ms: dict[str, int] = {}
        self._other_bytes = 0

    def add(self, client_id: str, size_bytes: int, now_ms: int) -> None:
        client_id = client_id[:_LONGEST_ID]
        if client_id not in self._sizes and not self._has_room(now_ms):
            self._other_bytes += size_bytes
            return
        self._sizes[client_id] = self._sizes.get(client_id, 0) + size_bytes
        # Moved to the end, so that the first is always the one idle for longest.
        self._seen_ms.pop(client_id, None)
        self._seen_ms[client_id] = now_ms

    def sizes(self) -> Mapping[str, int]:
        """Return bytes by client id; OTHER counts all further ids. Any thread may call it."""
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
