"""Memory for parts in flight to the store, shared by all uploads."""

from __future__ import annotations

import threading
from collections import deque


class UploadRoom:
    """A budget of bytes for parts. A part larger than the budget is sent alone. Thread-safe.

    First come, first served, so that small parts do not overtake a large one.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._taken_bytes = 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def take(self, size_bytes: int) -> None:
        """Wait until there is room, and reserve it."""
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
        """Free reserved room."""
        with self._changed:
            self._taken_bytes -= size_bytes
            self._changed.notify_all()

    def _is_free_for(self, ticket: object, size_bytes: int) -> bool:
        fits = not self._taken_bytes or self._taken_bytes + size_bytes <= self._budget_bytes
        return fits and self._waiting[0] is ticket
