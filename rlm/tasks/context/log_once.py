"""What is said once per change: a state that lasts is not told again in every cycle."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from threading import Lock

from rlm.broker.errors import PartitionGoneError
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


class LogOnce:
    """Remembers what was said last of each key. Thread-safe. Memory: one entry per key in it."""

    def __init__(self) -> None:
        self._last_texts: dict[Hashable, str] = {}
        self._lock = Lock()

    def changed(self, key: Hashable, text: str) -> bool:
        """Whether something else, or nothing, was said of `key` before."""
        with self._lock:
            before = self._last_texts.get(key)
            self._last_texts[key] = text
        return before != text

    def clear(self, key: Hashable) -> bool:
        """Nothing is to be said of `key` any more; whether there was something before."""
        with self._lock:
            return self._last_texts.pop(key, None) is not None


def log_level(text: LogOnce, tip: TopicIdPartition, what: str, error: TieredStorageError) -> int:
    """WARNING for a partition's problem that is another one than before; DEBUG if it lasts.

    That the broker has no such partition is said once per topic, and is INFO: the topic was
    deleted, and nobody has to act.
    """
    key: Hashable = tip
    level = logging.WARNING
    if isinstance(error, PartitionGoneError):
        key, level = (tip.topic_id, what), logging.INFO
    return level if text.changed(key, f"{what}: {error.message}") else logging.DEBUG
