"""Stores the chunks that are cached or being read, and evicts them. Not thread-safe.

The table enforces the budget. A chunk counts from its reservation until its removal. This module
does not read chunks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

ValueT = TypeVar("ValueT")


class ChunkKey(NamedTuple):
    """Identifies chunk `number` of `name`, whose bytes never change while the process runs."""

    name: str
    number: int


@dataclass(slots=True, kw_only=True)
class ChunkEntry(Generic[ValueT]):
    """The entry of a chunk. `value` is None until the chunk is read.

    `use_count` is the number of its current users. If `is_forgotten`, the chunk is removed after
    its last use.
    """

    size_bytes: int
    value: ValueT | None = None
    use_count: int = 0
    is_forgotten: bool = False

    @property
    def is_evictable(self) -> bool:
        return self.value is not None and not self.use_count


@dataclass(slots=True)
class ChunkTable(Generic[ValueT]):
    """The chunks in order of their last use. Not thread-safe.

    Memory: `budget_bytes`, as the sum of the reserved sizes.
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
        """Return the chunk's entry and mark it as most recently used."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def peek(self, key: ChunkKey) -> ChunkEntry[ValueT] | None:
        """Return the chunk's entry without marking it as used."""
        return self._entries.get(key)

    def reserve(self, key: ChunkKey, size_bytes: int) -> ChunkEntry[ValueT]:
        """Add an entry for a new chunk; the caller must have made room for it."""
        assert key not in self._entries
        assert self.buffered_bytes + size_bytes <= self.budget_bytes
        entry: ChunkEntry[ValueT] = ChunkEntry(size_bytes=size_bytes)
        self._entries[key] = entry
        self.buffered_bytes += size_bytes
        return entry

    def remove(self, key: ChunkKey) -> None:
        """Remove a chunk's entry."""
        self.buffered_bytes -= self._entries.pop(key).size_bytes

    def make_room(
        self, needed_bytes: int, *evictable_if: Callable[[ChunkKey], bool]
    ) -> tuple[ChunkKey, ...] | None:
        """Evict chunks until `needed_bytes` are free; return the evicted chunks.

        Evicts nothing and returns None if that is impossible. Applies the predicates one after
        another, so a chunk that only a later predicate accepts stays longer.
        """
        missing_bytes = self.buffered_bytes + needed_bytes - self.budget_bytes
        victims: dict[ChunkKey, None] = {}
        for allowed in evictable_if:
            for key, entry in self._entries.items():
                if missing_bytes <= 0:
                    break
                if entry.is_evictable and key not in victims and allowed(key):
                    victims[key] = None
                    missing_bytes -= entry.size_bytes
        if missing_bytes > 0:
            return None
        for key in victims:
            self.remove(key)
        self.evicted_count += len(victims)
        return tuple(victims)
