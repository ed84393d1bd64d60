"""CachedSegments: reads stored segments for timestamp lookups, through the chunk cache.

The data counts against the cache's budget, and all requests share one read. The data is usually
still in memory when the consumer starts to read at the returned offset.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from rlm.gateway.fetch.remote_result import SliceRequest
from rlm.gateway.remote.fetcher import RemoteFetcher
from rlm.remote_read.segment_parts import INDEXES, SegmentPart, part_name
from rlmm.lookup import NotStored
from rsm.cache.chunk_cache import ChunkCache
from rsm.cache.chunk_lease import ChunkRequest
from rsm.cache.chunk_table import ChunkKey
from rsm.read.segment_indexes import read_time_index
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import RetriableError
from rsm.segment.indexes import TimeIndex
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange
from rsm.spi import RemoteStorageManager

_T = TypeVar("_T")
_TIME_INDEX = 1  # The time index has this chunk number; the other indexes have 0.
_RUN_BYTES = 1 << 20


class CachedSegments:
    """Reads segments through the chunk cache. Thread-safe.

    A read that is not finished after `patience_ms` raises RetriableError.
    """

    def __init__(
        self,
        *,
        fetcher: RemoteFetcher,
        cache: ChunkCache[SegmentPart],
        storage: RemoteStorageManager,
        patience_ms: int = 30_000,
    ) -> None:
        """`cache` must be the cache of `fetcher`."""
        self._fetcher = fetcher
        self._cache = cache
        self._storage = storage
        self._patience_ms = patience_ms

    def time_index(self, metadata: RemoteLogSegmentMetadata) -> TimeIndex:
        """Return a segment's time index. The cache counts it with the companion's size.

        Raises the errors of the storage manager.
        """
        companion = metadata.objects[-1]
        request: ChunkRequest[SegmentPart] = ChunkRequest(
            key=ChunkKey(part_name(companion.key, INDEXES), _TIME_INDEX),
            size_bytes=companion.length_bytes or 1,
            load=partial(read_time_index, self._storage, metadata),
        )
        reader = object()
        try:
            with self._wait(self._cache.read([request], reader=reader)) as lease:
                (index,) = (part for part in lease.values if isinstance(part, TimeIndex))
                return index
        finally:
            self._cache.leave(reader)

    def scan_segment(self, stored: StoredRange, from_offset: int) -> Iterator[StoredBatches]:
        """Yield runs of batches, from the one that contains `from_offset` to the readable end.

        Raises the errors of `RemoteFetcher.fetch`.
        """
        client = object()
        try:
            yield from self._runs(stored, from_offset, client)
        finally:
            self._fetcher.forget(client)

    def _runs(
        self, stored: StoredRange, from_offset: int, client: Hashable
    ) -> Iterator[StoredBatches]:
        offset = from_offset
        while offset < stored.offsets.end_offset:
            fetch = SliceRequest(
                topic_id_partition=stored.metadata.segment_id.topic_id_partition,
                offset=offset,
                max_bytes=_RUN_BYTES,
                min_one_batch=True,
                read_committed=False,
                client=client,
            )
            found = self._wait(self._fetcher.fetch(fetch))
            if isinstance(found, NotStored):
                return
            data = memoryview(b"".join(found.buffers))
            found.release()
            offsets = OffsetRange(start_offset=found.base_offset, end_offset=found.next_offset)
            yield StoredBatches(metadata=stored.metadata, offsets=offsets, data=data)
            offset = found.next_offset

    def _wait(self, reading: Future[_T]) -> _T:
        try:
            return reading.result(self._patience_ms / 1000)
        except TimeoutError as error:
            reading.cancel()
            raise RetriableError(
                "cannot read the segment: the store does not respond in time",
                timeout_ms=self._patience_ms,
            ) from error
