"""Tracks the chunks that each reader of a cache needs, so that the cache evicts them last.

A reader reserves the chunks that it reads now, and those prefetched for it. Active readers
share the budget evenly: a chunk is prefetched for a reader only if all chunks that the reader
reserves then fit into its share. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from rsm.cache.chunk_table import ChunkKey

ReaderId = Hashable


@dataclass(slots=True)
class _Holding:
    """The chunks of a reader with their sizes; `ahead` is in the order of the prefetches."""

    seen_ms: int
    current: dict[ChunkKey, int] = field(default_factory=dict)
    ahead: dict[ChunkKey, int] = field(default_factory=dict)

    def size_bytes(self) -> int:
        return sum(self.current.values()) + sum(self.ahead.values())

    def take_ahead(self, chunks: Container[ChunkKey]) -> set[ChunkKey]:
        """Remove and return the chunks of `ahead` up to the last of `chunks`."""
        ahead = list(self.ahead)
        found = [number for number, key in enumerate(ahead) if key in chunks]
        taken = ahead[: found[-1] + 1] if found else []
        for key in taken:
            del self.ahead[key]
        return set(taken)

    def keys(self) -> Iterable[ChunkKey]:
        return (*self.current, *self.ahead)


class ReaderShares:
    """The reservations of all readers. Not thread-safe.

    A reader that reads nothing for `idle_ms` loses its reservations. Memory: a few hundred bytes
    for each active reader, and for each chunk that it reserves.
    """

    def __init__(self, *, budget_bytes: int, idle_ms: int) -> None:
        self._budget_bytes = budget_bytes
        self._idle_ms = idle_ms
        self._holdings: OrderedDict[ReaderId, _Holding] = OrderedDict()
        self._readers_by_key: defaultdict[ChunkKey, set[ReaderId]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._holdings)

    def share_bytes(self) -> int:
        """Return the share of the budget, in bytes, that each active reader has."""
        return self._budget_bytes // max(len(self._holdings), 1)

    def read_now(self, reader: ReaderId, chunks: Mapping[ChunkKey, int], now_ms: int) -> None:
        """Reserve `chunks` for the reader's current read; release the chunks of its previous read.

        Also releases the chunks that were prefetched before `chunks`: the reader got or skipped
        them.
        """
        self._forget_idle(now_ms)
        holding = self._holdings.setdefault(reader, _Holding(seen_ms=now_ms))
        self._holdings.move_to_end(reader)
        if holding.current == chunks:  # A current chunk is never in `ahead`.
            holding.seen_ms = now_ms
            return
        left = holding.current.keys() | holding.take_ahead(chunks)
        holding.seen_ms = now_ms
        holding.current = dict(chunks)
        for key in chunks:
            self._readers_by_key[key].add(reader)
        for key in left - chunks.keys() - holding.ahead.keys():
            self._release(reader, key)

    def read_ahead(self, reader: ReaderId, key: ChunkKey, size_bytes: int) -> bool:
        """Reserve a chunk for a prefetch if it fits into the share of an active reader.

        Returns whether the chunk is reserved now.
        """
        holding = self._holdings.get(reader)
        if holding is None:
            return False
        if key in holding.current or key in holding.ahead:
            return True
        if holding.size_bytes() + size_bytes > self.share_bytes():
            return False
        holding.ahead[key] = size_bytes
        self._readers_by_key[key].add(reader)
        return True

    def release_ahead(self, reader: ReaderId, key: ChunkKey) -> None:
        """Release a chunk whose prefetch did not start."""
        self._holdings[reader].ahead.pop(key, None)
        self._release(reader, key)

    def forget(self, reader: ReaderId) -> None:
        """Release the chunks of a reader that stopped reading."""
        holding = self._holdings.pop(reader, None)
        for key in () if holding is None else holding.keys():
            self._release(reader, key)

    def drop(self, key: ChunkKey) -> None:
        """Release all reservations of a chunk that is no longer in the cache."""
        for reader in self._readers_by_key.pop(key, ()):
            holding = self._holdings[reader]
            holding.current.pop(key, None)
            holding.ahead.pop(key, None)

    def is_reserved(self, key: ChunkKey) -> bool:
        """Return whether any reader reserves the chunk."""
        return key in self._readers_by_key

    def is_read_now(self, key: ChunkKey) -> bool:
        """Return whether any reader reads the chunk now."""
        readers = self._readers_by_key.get(key, ())
        return any(key in self._holdings[reader].current for reader in readers)

    def _forget_idle(self, now_ms: int) -> None:
        while self._holdings:
            reader, holding = next(iter(self._holdings.items()))
            if now_ms - holding.seen_ms < self._idle_ms:
                return
            self.forget(reader)

    def _release(self, reader: ReaderId, key: ChunkKey) -> None:
        readers = self._readers_by_key.get(key)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers_by_key[key]
