"""What is said once per change: a state that lasts is not told again in every cycle."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock


class ChangedWords:
    """Remembers what was said last of each key. Thread-safe. Memory: one entry per key in it."""

    def __init__(self) -> None:
        self._said: dict[Hashable, str] = {}
        self._lock = Lock()

    def are_new(self, key: Hashable, words: str) -> bool:
        """Whether something else, or nothing, was said of `key` before."""
        with self._lock:
            before = self._said.get(key)
            self._said[key] = words
        return before != words

    def ended(self, key: Hashable) -> bool:
        """Nothing is to be said of `key` any more; whether there was something before."""
        with self._lock:
            return self._said.pop(key, None) is not None
