"""Wraps a chunk storage to delay each request. Changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rsm.segment.clock import Clock
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper


class SlowChunkStorage(ChunkStorageWrapper):
    """Waits `delay_ms` before each request, in the caller's thread."""

    def __init__(self, inner: ChunkStorage, clock: Clock, *, delay_ms: int) -> None:
        super().__init__(inner)
        self._clock = clock
        self._delay_ms = delay_ms

    @contextmanager
    def _request(self, operation: str, name: str) -> Iterator[None]:
        self._clock.sleep_ms(self._delay_ms)
        yield
