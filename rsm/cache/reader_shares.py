"""ReaderShares: the chunks that each reader of a cache needs, so that others evict them last.

A reader reserves the chunks that it reads now, and those prefetched for it. Active readers share
the budget evenly: a chunk is prefetched for a reader only if the chunk fits into the reader's share
together with the chunks that the reader already reserves. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from rsm.cache.chunk_table import ChunkKey

ReaderId = Hashable


@dataclass(slots=True)
class _Holding:
    """One reader's chunks with their sizes; `ahead` is in the order of reading."""

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
    """The reservations of all readers. A reader idle for `idle_ms` loses its own. Not thread-safe.

    Memory: a few hundred bytes for each active reader, and for each chunk that it reserves.
    """

    def __init__(self, *, budget_bytes: int, idle_ms: int) -> None:
        self._budget_bytes = budget_bytes
        self._idle_ms = idle_ms
        self._holdings: OrderedDict[ReaderId, _Holding] = OrderedDict()
        self._readers_by_key: defaultdict[ChunkKey, set[ReaderId]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._holdings)

    def share_bytes(self) -> int:
        """Return the share of each active reader."""
        return self._budget_bytes // max(len(self._holdings), 1)

    def read_now(self, reader: ReaderId, chunks: Mapping[ChunkKey, int], now_ms: int) -> None:
        """Reserve `chunks` for the reader's current read, and release its previous ones.

        Also releases the prefetched chunks before them: the reader got or skipped those.
        """
        self._forget_idle(now_ms)
        holding = self._holdings.setdefault(reader, _Holding(seen_ms=now_ms))
        self._holdings.move_to_end(reader)
        if holding.current == chunks:  # a current chunk is never in `ahead`
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
        """Reserve a chunk if the reader's share allows it; return whether it is reserved now.

        Returns False if the reader is not active.
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
        """Undo a `read_ahead` that was not carried out."""
        self._holdings[reader].ahead.pop(key, None)
        self._release(reader, key)

    def forget(self, reader: ReaderId) -> None:
        """Release the chunks of a reader that stopped reading here."""
        holding = self._holdings.pop(reader, None)
        for key in () if holding is None else holding.keys():
            self._release(reader, key)

    def drop(self, key: ChunkKey) -> None:
        """Release a chunk that is not in memory any more."""
        for reader in self._readers_by_key.pop(key, ()):
            holding = self._holdings[reader]
            holding.current.pop(key, None)
            holding.ahead.pop(key, None)

    def is_reserved(self, key: ChunkKey) -> bool:
        """Return whether any reader reads the chunk now or will read it soon."""
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
