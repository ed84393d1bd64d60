"""Remembers positions that earlier reads found in objects, so that later reads skip the search."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict


class NotedPositions:
    """Pairs of numbers (`at`, `value`) for each object. Thread-safe.

    Memory: `limit_count` pairs in total, about 150 bytes each. Above the limit, the object whose
    last pair was noted the longest time ago loses all of its pairs.
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
        """Return the pair of `key` with the greatest `at` up to this one; None if there is none."""
        with self._lock:
            pairs = self._noted.get(key, ())
            number = bisect_right(pairs, at, key=_at)
            return pairs[number - 1] if number else None

    def note(self, key: str, at: int, value: int) -> None:
        """Add a pair to those of `key`; replace a pair with the same `at`."""
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
        """Return the keys of the objects that have pairs."""
        with self._lock:
            return tuple(self._noted)

    def forget(self, key: str) -> None:
        """Remove all pairs of `key`."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: str) -> None:
        self._count -= len(self._noted.pop(key, ()))


def _at(pair: tuple[int, int]) -> int:
    return pair[0]
