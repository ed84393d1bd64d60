"""Memory for parts in flight to the store, shared by all uploads."""

from __future__ import annotations

import threading
from collections import deque


class UploadRoom:
    """A budget of bytes for parts. A part larger than the budget is sent alone. Thread-safe.

    First come, first served, so that small parts do not overtake a large one. A room `within`
    another one also takes each part's bytes from the other one.
    """

    def __init__(self, budget_bytes: int, *, within: UploadRoom | None = None) -> None:
        self._budget_bytes = budget_bytes
        self._within = within
        self._taken_bytes = 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def take(self, size_bytes: int) -> None:
        """Wait until there is room, and reserve it."""
        self._reserve(size_bytes)
        if self._within is None:
            return
        try:
            self._within.take(size_bytes)
        except BaseException:
            self._release(size_bytes)
            raise

    def give_back(self, size_bytes: int) -> None:
        """Free reserved room."""
        if self._within is not None:
            self._within.give_back(size_bytes)
        self._release(size_bytes)

    def _reserve(self, size_bytes: int) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._is_free_for(ticket, size_bytes))
                self._taken_bytes += size_bytes
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _release(self, size_bytes: int) -> None:
        with self._changed:
            self._taken_bytes -= size_bytes
            self._changed.notify_all()

    def _is_free_for(self, ticket: object, size_bytes: int) -> bool:
        fits = not self._taken_bytes or self._taken_bytes + size_bytes <= self._budget_bytes
        return fits and self._waiting[0] is ticket
