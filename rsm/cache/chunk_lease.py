"""Represents a reader's request to a chunk cache, and the lease that the reader gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from rsm.cache.chunk_table import ChunkKey

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRequest(Generic[ValueT]):
    """A chunk, its bytes in the budget, and the function `load` that reads it.

    After the chunk is cached, the cache calls `loaded` on any thread; `loaded` must not raise.
    """

    key: ChunkKey
    size_bytes: int
    load: Callable[[], ValueT]
    loaded: Callable[[], None] | None = None


class ChunkLease(Generic[ValueT]):
    """Chunks that stay in memory and count against the budget until `release`. Thread-safe.

    If the lease is garbage-collected before its release, it calls `abandoned`, at any time and on
    any thread.
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
        """Return the keys of the chunks, in the order of `values`; empty after `release`."""
        return tuple(key for keys in tuple(self._leased) for key in keys)

    def release(self) -> None:
        """Give the chunks back to the cache; do not use their values afterwards. Idempotent."""
        try:
            keys = self._leased.pop()  # This succeeds only in the first call.
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
