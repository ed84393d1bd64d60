"""Room in memory for parts on their way to the store, shared by all uploads."""

from __future__ import annotations

import threading
from collections import deque


class UploadRoom:
    """`budget_bytes` for all that have taken room; who wants more than that is alone. Thread-safe.

    First come, first served: a large part is not kept waiting by small ones behind it.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._taken_bytes = 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def take(self, size_bytes: int) -> None:
        """Return when there is room, which is then taken."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._is_free_for(ticket, size_bytes))
                self._taken_bytes += size_bytes
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def give_back(self, size_bytes: int) -> None:
        """What was taken is free again."""
        with self._changed:
            self._taken_bytes -= size_bytes
            self._changed.notify_all()

    def _is_free_for(self, ticket: object, size_bytes: int) -> bool:
        fits = not self._taken_bytes or self._taken_bytes + size_bytes <= self._budget_bytes
        return fits and self._waiting[0] is ticket
