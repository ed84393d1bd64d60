"""A fetcher over stored segments, in a store that records the requests."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from rlm.gateway.fetch.remote_result import FetchOutcome, RemoteSlice, SliceRequest
from rlm.gateway.remote.fetcher import RemoteFetcher, RemoteFetchSettings
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.segment_parts import SegmentPart
from rsm.cache.chunk_cache import ChunkCache, ChunkCacheSettings
from rsm.cache.chunk_table import ChunkKey
from rsm.cache.disk_chunks import DiskChunks
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.watched_storage import WatchedStorage
from tests.remote_world import TIP, RemoteWorld

CHUNK_BYTES = 16_384


class FetchWorld(RemoteWorld):
    """Reads of the store wait in `held` unless an executor is given."""

    def __init__(
        self,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        ahead_chunk_count: int = 2,
        budget_bytes: int = 1 << 20,
        executor: Executor | None = None,
        concurrent_reads: int = 8,
        disk: DiskChunks | None = None,
    ) -> None:
        self.watched = WatchedStorage()
        super().__init__(self.watched, disk=disk)
        self.held = QueuedExecutor()
        self.anomalies = ReadAnomalies(self.clock)
        self.cache = ChunkCache[SegmentPart](
            executor=executor or self.held,
            clock=self.clock,
            settings=ChunkCacheSettings(
                budget_bytes=budget_bytes, concurrent_reads=concurrent_reads
            ),
        )
        self.fetcher = RemoteFetcher(
            metadata=self.metadata,
            storage=self.storage,
            cache=self.cache,
            anomalies=self.anomalies,
            clock=self.clock,
            settings=RemoteFetchSettings(
                chunk_bytes=chunk_bytes,
                read_ahead_least_bytes=ahead_chunk_count * chunk_bytes,
                read_ahead_most_bytes=2 * ahead_chunk_count * chunk_bytes,
            ),
        )

    def fetch(
        self,
        offset: int,
        *,
        max_bytes: int = 1 << 20,
        min_one_batch: bool = True,
        read_committed: bool = False,
        client: str = "a",
    ) -> Future[FetchOutcome]:
        request = self.request(
            offset,
            max_bytes=max_bytes,
            min_one_batch=min_one_batch,
            read_committed=read_committed,
            client=client,
        )
        return self.fetcher.fetch(request)

    @staticmethod
    def request(
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool = True,
        read_committed: bool = False,
        client: str = "a",
    ) -> SliceRequest:
        return SliceRequest(
            topic_id_partition=TIP,
            offset=offset,
            max_bytes=max_bytes,
            min_one_batch=min_one_batch,
            read_committed=read_committed,
            client=client,
        )

    def slice(self, offset: int, *, max_bytes: int = 1 << 20, client: str = "a") -> RemoteSlice:
        """Fetch, and return the result after all reads of the store."""
        fetching = self.fetch(offset, max_bytes=max_bytes, client=client)
        self.held.run_all()
        return taken(fetching)

    def chunk_key(self, base_offset: int, number: int) -> ChunkKey:
        """Return the key of a log chunk of the segment with that base offset."""
        (segment,) = [
            record.metadata
            for record in self.metadata.list_remote_log_segments(TIP)
            if record.metadata.offsets.start_offset == base_offset
        ]
        return self.fetcher._parts.chunk_keys(segment, [number])[0]

    def log_reads(self) -> list[int]:
        """Return the number of the first chunk of each read of a log."""
        chunk_bytes = CHUNK_BYTES
        return [read.start_position // chunk_bytes for read in self.watched.reads_of(".log")]


def taken(fetching: Future[FetchOutcome]) -> RemoteSlice:
    outcome = fetching.result(30)
    assert isinstance(outcome, RemoteSlice)
    return outcome


def content_of(found: RemoteSlice) -> bytes:
    """Return the batches, and release the slice."""
    content = b"".join(found.buffers)
    found.release()
    return content


def in_use(world: FetchWorld) -> list[ChunkKey]:
    """Return the keys of the chunks in use."""
    return [key for key, entry in world.cache._table._entries.items() if entry.use_count]
