"""What a reader of a chunk cache asks for, and what it holds when it has got it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from rsm.cache.chunk_table import ChunkKey

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRequest(Generic[ValueT]):
    """A chunk, what it costs of the budget, and how to read it where it is not in memory.

    `loaded` is run where `load` was, once the chunk is in memory, and may not raise.
    """

    key: ChunkKey
    size_bytes: int
    load: Callable[[], ValueT]
    loaded: Callable[[], None] | None = None


class ChunkLease(Generic[ValueT]):
    """Chunks that stay in memory, and count, until they are released. Thread-safe.

    One that is lost unreleased is reported to `abandoned`, at any time and on any thread.
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
        """The chunks' keys, in the order of `values`; none once they are released."""
        return tuple(key for keys in tuple(self._leased) for key in keys)

    def release(self) -> None:
        """Give the chunks back; nothing of them may be referred to after. Idempotent."""
        try:
            keys = self._leased.pop()  # succeeds once, whichever thread is first
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
