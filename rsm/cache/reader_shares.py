"""ReaderShares: what each reader of a cache is about to read, so that no other drives it out.

A reader holds the chunks it reads now and those that were read ahead for it. The readers that are
active share the budget evenly: what one reads ahead must fit into its share beside what it reads
now. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from rsm.cache.chunk_table import ChunkKey

ReaderId = Hashable


@dataclass(slots=True)
class _Holding:
    """One reader's chunks with their sizes, `ahead` in the order in which it will read them."""

    seen_ms: int
    current: dict[ChunkKey, int] = field(default_factory=dict)
    ahead: dict[ChunkKey, int] = field(default_factory=dict)

    def size_bytes(self) -> int:
        return sum(self.current.values()) + sum(self.ahead.values())

    def take_ahead(self, chunks: Container[ChunkKey]) -> set[ChunkKey]:
        """Remove all up to the last of `chunks` from what is ahead."""
        ahead = list(self.ahead)
        found = [number for number, key in enumerate(ahead) if key in chunks]
        taken = ahead[: found[-1] + 1] if found else []
        for key in taken:
            del self.ahead[key]
        return set(taken)

    def keys(self) -> Iterable[ChunkKey]:
        return (*self.current, *self.ahead)


class ReaderShares:
    """Who holds what. A reader that has not read for `idle_ms` holds nothing any more.

    Memory: a few hundred bytes for each reader that is active, and for each chunk it holds.
    """

    def __init__(self, *, budget_bytes: int, idle_ms: int) -> None:
        self._budget_bytes = budget_bytes
        self._idle_ms = idle_ms
        self._holdings: OrderedDict[ReaderId, _Holding] = OrderedDict()
        self._readers_by_key: defaultdict[ChunkKey, set[ReaderId]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._holdings)

    def share_bytes(self) -> int:
        """What each of the active readers may hold."""
        return self._budget_bytes // max(len(self._holdings), 1)

    def read_now(self, reader: ReaderId, chunks: Mapping[ChunkKey, int], now_ms: int) -> None:
        """The reader goes on to `chunks`; what it read before is held no more.

        Neither is what was read ahead to come before them: it was given that, or passed it by.
        """
        self._forget_idle(now_ms)
        holding = self._holdings.setdefault(reader, _Holding(seen_ms=now_ms))
        self._holdings.move_to_end(reader)
        if holding.current == chunks:  # what it reads now is never ahead, too
            holding.seen_ms = now_ms
            return
        left = holding.current.keys() | holding.take_ahead(chunks)
        holding.seen_ms = now_ms
        holding.current = dict(chunks)
        for key in chunks:
            self._readers_by_key[key].add(reader)
        for key in left - chunks.keys() - holding.ahead.keys():
            self._let_go(reader, key)

    def read_ahead(self, reader: ReaderId, key: ChunkKey, size_bytes: int) -> bool:
        """Hold one more chunk if the reader's share allows; only for readers that read."""
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
        """Take back a `read_ahead` that was not carried out."""
        self._holdings[reader].ahead.pop(key, None)
        self._let_go(reader, key)

    def forget(self, reader: ReaderId) -> None:
        """The reader has gone or reads elsewhere."""
        holding = self._holdings.pop(reader, None)
        for key in () if holding is None else holding.keys():
            self._let_go(reader, key)

    def dropped(self, key: ChunkKey) -> None:
        """The chunk is not in memory any more."""
        for reader in self._readers_by_key.pop(key, ()):
            holding = self._holdings[reader]
            holding.current.pop(key, None)
            holding.ahead.pop(key, None)

    def is_reserved(self, key: ChunkKey) -> bool:
        """Whether any reader reads it now or is about to."""
        return key in self._readers_by_key

    def is_read_now(self, key: ChunkKey) -> bool:
        """Whether any reader reads it now."""
        readers = self._readers_by_key.get(key, ())
        return any(key in self._holdings[reader].current for reader in readers)

    def _forget_idle(self, now_ms: int) -> None:
        while self._holdings:
            reader, holding = next(iter(self._holdings.items()))
            if now_ms - holding.seen_ms < self._idle_ms:
                return
            self.forget(reader)

    def _let_go(self, reader: ReaderId, key: ChunkKey) -> None:
        readers = self._readers_by_key.get(key)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers_by_key[key]
