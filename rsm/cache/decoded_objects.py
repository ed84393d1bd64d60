"""Caches recently read objects in decoded form, within a budget of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class DecodedObjects(Generic[ValueT]):
    """A cache of objects by key, which evicts the least recently used object. Thread-safe.

    Memory: `budget_bytes`, as the sum of the encoded lengths. An object that exceeds the budget
    evicts all others, and is not cached itself. If several threads miss the same key at the same
    time, each of them loads the object.
    """

    def __init__(self, *, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._buffered_bytes = 0
        self._entries: OrderedDict[str, tuple[ValueT, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, load: Callable[[], tuple[ValueT, int]]) -> ValueT:
        """Return the object of `key`; load and cache it if it is not cached.

        `load` returns the object and its encoded length in bytes.
        """
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        value, length_bytes = load()
        with self._lock:
            self._remove(key)
            self._entries[key] = (value, length_bytes)
            self._buffered_bytes += length_bytes
            while self._buffered_bytes > self._budget_bytes:
                self._remove(next(iter(self._entries)))
        return value

    def keys(self) -> tuple[str, ...]:
        """Return the keys of the cached objects."""
        with self._lock:
            return tuple(self._entries)

    def forget(self, key: str) -> None:
        """Drop the object of `key`; a load in progress may cache it again."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: str) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._buffered_bytes -= found[1]
