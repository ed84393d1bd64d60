"""ChunkTable: which chunks are in memory or on their way, and which may go. Not thread-safe.

Owns the budget: what is counted never exceeds it. A chunk counts from the moment its place is
reserved, while it is read, and for as long as somebody uses it. Must not know how chunks are read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

ValueT = TypeVar("ValueT")


class ChunkKey(NamedTuple):
    """Chunk `number` of `name`: the same bytes for as long as the process lives."""

    name: str
    number: int


@dataclass(slots=True, kw_only=True)
class ChunkEntry(Generic[ValueT]):
    """A chunk's place. `value` is None until it has been read; `use_count` are its users.

    `is_forgotten`: it goes with its last user.
    """

    size_bytes: int
    value: ValueT | None = None
    use_count: int = 0
    is_forgotten: bool = False

    @property
    def evictable(self) -> bool:
        return self.value is not None and not self.use_count


@dataclass(slots=True)
class ChunkTable(Generic[ValueT]):
    """The least recently used go first, of those that the caller lets go.

    Memory: `budget_bytes`, in the sizes that were reserved.
    """

    budget_bytes: int
    buffered_bytes: int = 0
    evicted_count: int = 0
    _entries: OrderedDict[ChunkKey, ChunkEntry[ValueT]] = field(default_factory=OrderedDict)

    def __contains__(self, key: ChunkKey) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[ChunkKey]:
        return iter(self._entries)

    def get(self, key: ChunkKey) -> ChunkEntry[ValueT] | None:
        """The chunk's entry, used most recently from now on."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def peek(self, key: ChunkKey) -> ChunkEntry[ValueT] | None:
        """The chunk's entry, used no more recently for it."""
        return self._entries.get(key)

    def reserve(self, key: ChunkKey, size_bytes: int) -> ChunkEntry[ValueT]:
        """A place for a chunk that has none; there must be room for it."""
        assert key not in self._entries
        assert self.buffered_bytes + size_bytes <= self.budget_bytes
        entry: ChunkEntry[ValueT] = ChunkEntry(size_bytes=size_bytes)
        self._entries[key] = entry
        self.buffered_bytes += size_bytes
        return entry

    def remove(self, key: ChunkKey) -> None:
        """Give up a chunk's place."""
        self.buffered_bytes -= self._entries.pop(key).size_bytes

    def make_room(
        self, needed_bytes: int, *may_go: Callable[[ChunkKey], bool]
    ) -> tuple[ChunkKey, ...] | None:
        """Evict until `needed_bytes` are free; None, and nothing evicted, if that cannot be.

        `may_go` are asked one after the other: what only a later one lets go stays longer.
        """
        missing_bytes = self.buffered_bytes + needed_bytes - self.budget_bytes
        victims: dict[ChunkKey, None] = {}
        for allowed in may_go:
            for key, entry in self._entries.items():
                if missing_bytes <= 0:
                    break
                if entry.evictable and key not in victims and allowed(key):
                    victims[key] = None
                    missing_bytes -= entry.size_bytes
        if missing_bytes > 0:
            return None
        for key in victims:
            self.remove(key)
        self.evicted_count += len(victims)
        return tuple(victims)
