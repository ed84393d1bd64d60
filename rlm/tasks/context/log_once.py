"""Finds out whether a state has changed, so that it is logged once and not in every cycle."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from threading import Lock


class LogOnce:
    """Remembers the last text logged per key. Thread-safe. Memory: one entry per key."""

    __slots__ = ("_last_texts", "_lock")

    def __init__(self) -> None:
        self._last_texts: dict[Hashable, str] = {}
        self._lock = Lock()

    def changed(self, key: Hashable, text: str) -> bool:
        """Remember `text` for `key`; return whether it is the first one or has changed."""
        with self._lock:
            before = self._last_texts.get(key)
            self._last_texts[key] = text
        return before != text

    def retain(self, subjects: Collection[Hashable]) -> None:
        """Forget all keys except those of `subjects`. A key is a subject or (subject, aspect)."""
        with self._lock:
            self._last_texts = {
                key: text
                for key, text in self._last_texts.items()
                if (key[0] if isinstance(key, tuple) else key) in subjects
            }

    def clear(self, key: Hashable) -> bool:
        """Forget the text of `key`; return whether there was one."""
        with self._lock:
            return self._last_texts.pop(key, None) is not None
