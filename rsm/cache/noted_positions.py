"""Pairs of numbers noted of objects: what reads came by that makes the next one's begin exact."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict


class NotedPositions:
    """For each object pairs (at, value), found by the greatest `at` not above one. Thread-safe.

    Memory: `limit_count` pairs in all, about 150 bytes each; the objects whose pairs were noted
    least recently go first, and of one that has all of them, all.
    """

    def __init__(self, *, limit_count: int = 16_384) -> None:
        self._limit_count = limit_count
        self._count = 0
        self._noted: OrderedDict[str, list[tuple[int, int]]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return self._count

    def floor(self, key: str, at: int) -> tuple[int, int] | None:
        """The pair of `key` with the greatest `at` that is not above this one."""
        with self._lock:
            pairs = self._noted.get(key, ())
            number = bisect_right(pairs, at, key=_at)
            return pairs[number - 1] if number else None

    def note(self, key: str, at: int, value: int) -> None:
        """Keep a pair; another one with the same `at` is replaced."""
        with self._lock:
            pairs = self._noted.setdefault(key, [])
            self._noted.move_to_end(key)
            number = bisect_left(pairs, at, key=_at)
            if number < len(pairs) and pairs[number][0] == at:
                pairs[number] = (at, value)
                return
            insort(pairs, (at, value))
            self._count += 1
            while self._count > self._limit_count:
                self._remove(next(iter(self._noted)))

    def keys(self) -> tuple[str, ...]:
        """The objects of which pairs are kept."""
        with self._lock:
            return tuple(self._noted)

    def forget(self, key: str) -> None:
        """Keep nothing of `key`."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: str) -> None:
        self._count -= len(self._noted.pop(key, ()))


def _at(pair: tuple[int, int]) -> int:
    return pair[0]
