"""A reader's request to a chunk cache, and the lease that it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from rsm.cache.chunk_table import ChunkKey

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRequest(Generic[ValueT]):
    """A chunk, its cost in bytes of the budget, and the function that reads it.

    `loaded` runs after the chunk is cached, on any thread, and must not raise.
    """

    key: ChunkKey
    size_bytes: int
    load: Callable[[], ValueT]
    loaded: Callable[[], None] | None = None


class ChunkLease(Generic[ValueT]):
    """Chunks that stay in memory and count against the budget until released. Thread-safe.

    Garbage collection of an unreleased lease calls `abandoned`, at any time and on any thread.
    """

    def __init__(
        self,
        values: tuple[ValueT, ...],
        keys: Sequence[ChunkKey],
        *,
        released: Callable[[Sequence[ChunkKey]], None],
        abandoned: Callable[[Sequence[ChunkKey]], None],
    ) -> None:
        self.values = values
        self._leased = [keys]
        self._released = released
        self._abandoned = abandoned

    @property
    def keys(self) -> tuple[ChunkKey, ...]:
        """The chunks' keys, in the order of `values`; empty after the release."""
        return tuple(key for keys in tuple(self._leased) for key in keys)

    def release(self) -> None:
        """Give the chunks back to the cache; do not use their values afterwards. Idempotent."""
        try:
            keys = self._leased.pop()  # succeeds once, in the first thread
        except IndexError:
            return
        self.values = ()
        self._released(keys)

    def __del__(self) -> None:
        for keys in self._leased:
            self._abandoned(keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
