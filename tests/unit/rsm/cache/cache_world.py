"""A cache of chunks that cost 10 bytes each, for tests."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Executor, Future

from rsm.cache.chunk_cache import ChunkCache, ChunkCacheSettings
from rsm.cache.chunk_lease import ChunkLease, ChunkRequest
from rsm.cache.chunk_table import ChunkKey
from tests.fakes.queued_executor import QueuedExecutor
from tests.log_dir_builder import ManualClock

Reading = Future[ChunkLease[str]]


def key(index: int) -> ChunkKey:
    return ChunkKey(name="log", number=index)


class World:
    """A cache of chunks that cost 10 bytes each, and how often each was read."""

    def __init__(
        self, *, chunk_count: int = 4, concurrent_reads: int = 8, executor: Executor | None = None
    ) -> None:
        self.clock = ManualClock()
        self.held = QueuedExecutor()
        self.read_count: Counter[int] = Counter()
        self.errors: dict[int, Exception] = {}
        settings = ChunkCacheSettings(
            budget_bytes=10 * chunk_count, concurrent_reads=concurrent_reads, idle_reader_ms=1_000
        )
        self.cache = ChunkCache[str](
            executor=executor or self.held, clock=self.clock, settings=settings
        )

    def request(self, index: int) -> ChunkRequest[str]:
        def load() -> str:
            self.read_count[index] += 1
            if index in self.errors:
                raise self.errors.pop(index)
            return f"chunk {index}"

        return ChunkRequest(key=key(index), size_bytes=10, load=load)

    def read(self, *indexes: int, reader: str = "a", extend: tuple[int, ...] = ()) -> Reading:
        requests = [self.request(index) for index in indexes]
        return self.cache.read(requests, reader=reader, extend=[key(index) for index in extend])

    def ahead(self, index: int, *, reader: str = "a") -> bool:
        return self.cache.read_ahead(self.request(index), reader=reader)

    def take(self, *indexes: int, reader: str = "a") -> None:
        """Read these chunks and release them."""
        reading = self.read(*indexes, reader=reader)
        self.held.run_all()
        reading.result(0).release()

    def is_in_memory(self, index: int) -> bool:
        reading = self.read(index, reader="observer")
        found = reading.done()
        reading.cancel()
        return found
