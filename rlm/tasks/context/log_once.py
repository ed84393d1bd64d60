"""Logs a lasting state once, when it changes, and not in every cycle."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from threading import Lock

from rlm.broker.errors import PartitionGoneError
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


class LogOnce:
    """Remembers the last text logged per key. Thread-safe. Memory: one entry per such key."""

    def __init__(self) -> None:
        self._last_texts: dict[Hashable, str] = {}
        self._lock = Lock()

    def changed(self, key: Hashable, text: str) -> bool:
        """Remember `text` for `key`; return whether it differs from the previous text, if any."""
        with self._lock:
            before = self._last_texts.get(key)
            self._last_texts[key] = text
        return before != text

    def clear(self, key: Hashable) -> bool:
        """Forget the text of `key`; return whether there was one."""
        with self._lock:
            return self._last_texts.pop(key, None) is not None


def log_level(text: LogOnce, tip: TopicIdPartition, what: str, error: TieredStorageError) -> int:
    """Return WARNING for a new problem of a partition, DEBUG for one that lasts.

    A partition that the broker does not have is logged once per topic at INFO: the topic was
    deleted, and nobody has to act.
    """
    key: Hashable = tip
    level = logging.WARNING
    if isinstance(error, PartitionGoneError):
        key, level = (tip.topic_id, what), logging.INFO
    return level if text.changed(key, f"{what}: {error.message}") else logging.DEBUG
