"""RemoteLogReader: reads stored segments as runs of complete, verified record batches.

It is for one consumer that reads a large range: it reads across segments, prefetches, and bypasses
all caches. rlmm.lookup finds segments and rsm.segment.batches.segment_cursor verifies batches;
records are not decoded. rlm.gateway.remote.fetcher is for many readers of a few batches.

Memory of a scan: (ahead_count + 2) · fetch_bytes and one batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass

from rlm.remote_read.segment_parts import read_stored
from rlmm.lookup import NotStored, locate
from rlmm.spi import RemoteLogMetadataManager
from rsm.read.segment_indexes import read_indexes, read_time_index
from rsm.segment.batches.segment_cursor import SegmentCursor, StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import TopicIdPartition
from rsm.segment.indexes import OffsetIndexEntry, TimeIndex
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import RemoteStorageManager

_MIN_FETCH_BYTES = 65_536
_Fetched = Generator[tuple[SegmentCursor, bytes], None, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """The size of a fetch, and how many are in-flight in addition to the one in use."""

    fetch_bytes: int = 4 << 20
    ahead_count: int = 1

    def __post_init__(self) -> None:
        if self.fetch_bytes < _MIN_FETCH_BYTES or self.ahead_count < 0:
            raise ValueError(f"not settings to read with: {self}")


class RemoteScan:
    """One pass over stored batches; iterate it once, in one thread.

    It ends at `end_offset`, or at the first offset without a readable stored segment. It raises
    NotFoundError or CorruptError if a segment that should be readable is not. Reading continues at
    `next_offset`, which is also after a compaction gap at a segment's end.
    """

    def __init__(self, fetched: _Fetched, from_offset: int, end_offset: int | None = None) -> None:
        self._fetched = fetched
        self._next_offset = from_offset
        self._end_offset = end_offset

    @property
    def next_offset(self) -> int:
        """Return the offset below which all stored batches were yielded."""
        return self._next_offset

    def __iter__(self) -> Iterator[StoredBatches]:
        with closing(self._fetched) as fetched:
            for cursor, piece in fetched:
                for run in cursor.feed(piece):
                    yield run
                    self._next_offset = run.offsets.end_offset
                if cursor.done:
                    self._next_offset = cursor.stored.offsets.end_offset
                if self._end_offset is not None and self._next_offset >= self._end_offset:
                    return  # a segment may be far longer than the requested range


class RemoteLogReader:
    """Reads stored segments. Thread-safe; a scan belongs to one thread.

    `executor` runs only fetches, and limits how many run at once.
    """

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        storage: RemoteStorageManager,
        executor: Executor,
        settings: ReadSettings | None = None,
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._executor = executor
        self._settings = settings or ReadSettings()

    def scan(
        self, topic_id_partition: TopicIdPartition, from_offset: int, end_offset: int | None = None
    ) -> RemoteScan:
        """Read from the batch that contains `from_offset`; the last run may pass `end_offset`."""
        located_ranges = self._located_ranges(topic_id_partition, from_offset, end_offset)
        return RemoteScan(self._prefetch(self._requests(located_ranges)), from_offset, end_offset)

    def time_index(self, metadata: RemoteLogSegmentMetadata) -> TimeIndex:
        """Return a segment's time index. Raises NotFoundError, CorruptError, RetriableError."""
        return read_time_index(self._storage, metadata)

    def scan_segment(self, stored: StoredRange, from_offset: int) -> RemoteScan:
        """Read one segment to the end of its readable part."""
        requests = self._requests(iter([(stored, from_offset)]))
        return RemoteScan(self._prefetch(requests), from_offset)

    def _located_ranges(
        self, tip: TopicIdPartition, from_offset: int, end_offset: int | None
    ) -> Iterator[tuple[StoredRange, int]]:
        """Yield one segment after the other, each with the offset to start at."""
        offset = from_offset
        while end_offset is None or offset < end_offset:
            stored = locate(self._metadata, tip, offset)
            if isinstance(stored, NotStored):
                return
            yield stored, offset
            offset = stored.offsets.end_offset

    def _requests(
        self, located_ranges: Iterator[tuple[StoredRange, int]]
    ) -> Iterator[tuple[SegmentCursor, ByteRange]]:
        for stored, from_offset in located_ranges:
            cursor = self._open(stored, from_offset)
            for positions in _pieces(cursor, self._settings.fetch_bytes):
                yield cursor, positions

    def _open(self, stored: StoredRange, from_offset: int) -> SegmentCursor:
        metadata = stored.metadata
        entry = OffsetIndexEntry(offset=metadata.offsets.start_offset, position=0)
        if from_offset > metadata.offsets.start_offset:
            entry = read_indexes(self._storage, metadata).lookup(
                from_offset, metadata.segment_size_bytes
            )
        return SegmentCursor(stored, from_offset=from_offset, entry=entry)

    def _prefetch(self, requests: Iterator[tuple[SegmentCursor, ByteRange]]) -> _Fetched:
        """Fetch the requested ranges in order, some of them while the consumer is busy."""
        under_way: deque[tuple[SegmentCursor, Future[bytes]]] = deque()
        try:
            for cursor, positions in requests:
                under_way.append((cursor, self._executor.submit(self._fetch, cursor, positions)))
                if len(under_way) > self._settings.ahead_count:
                    yield _taken(under_way)
            while under_way:
                yield _taken(under_way)
        finally:
            for _, future in under_way:
                future.cancel()

    def _fetch(self, cursor: SegmentCursor, positions: ByteRange) -> bytes:
        return read_stored(self._storage, cursor.stored.metadata, positions)


def _pieces(cursor: SegmentCursor, fetch_bytes: int) -> Iterator[ByteRange]:
    """Yield the ranges of a segment to fetch, until its cursor is done."""
    size = cursor.stored.metadata.segment_size_bytes
    position = cursor.position
    while position < size and not cursor.done:
        end_position = min(position + fetch_bytes, size)
        yield ByteRange(start_position=position, end_position=end_position)
        position = end_position


def _taken(under_way: deque[tuple[SegmentCursor, Future[bytes]]]) -> tuple[SegmentCursor, bytes]:
    cursor, future = under_way.popleft()
    return cursor, future.result()
