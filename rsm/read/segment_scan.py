"""Reads stored segments as runs of complete, verified record batches.

A scan serves one consumer of a large range. It finds the first batch by the offset index, fetches
ranges of the log ahead of the consumer, and does not cache the log. The caller selects the
segments; rsm.segment.batches.segment_cursor verifies batches. A scan does not decode records.

Memory of a scan: (ahead_count + 2) · fetch_bytes and one batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass

from rsm.read.segment_indexes import read_indexes
from rsm.segment.batches.segment_cursor import SegmentCursor, StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import RemoteStorageManager

_MIN_FETCH_BYTES = 65_536
_Fetched = Generator[tuple[SegmentCursor, bytes], None, None]
LogFetch = Callable[[RemoteLogSegmentMetadata, ByteRange], bytes]
"""Returns bytes of a segment's log, as `RemoteStorageManager.fetch_log_segment` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSettings:
    """Represents the size of a fetch, and the number of fetches ahead of the consumer."""

    fetch_bytes: int = 4 << 20
    ahead_count: int = 1

    def __post_init__(self) -> None:
        if self.fetch_bytes < _MIN_FETCH_BYTES or self.ahead_count < 0:
            raise ValueError(f"the scan settings are invalid: {self}")


class RemoteScan:
    """Represents one pass over stored batches. Iterate it once, in one thread.

    The pass ends at `end_offset` or after the last segment. It raises NotFoundError, CorruptError
    or RetriableError if a segment cannot be read. A reader continues at `next_offset`. If
    compaction removed a segment's last offsets, `next_offset` is above them.
    """

    def __init__(self, fetched: _Fetched, from_offset: int, end_offset: int | None) -> None:
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
                if cursor.is_done:
                    self._next_offset = cursor.stored.offsets.end_offset
                if self._end_offset is not None and self._next_offset >= self._end_offset:
                    return  # A segment may be far longer than the requested range.


class RemoteScanner:
    """Starts scans of one storage. Thread-safe; a scan belongs to one thread.

    `executor` runs only fetches, and limits how many run at once. `fetch` replaces the storage's
    own fetch, for example to add context to its errors.
    """

    def __init__(
        self,
        storage: RemoteStorageManager,
        executor: Executor,
        settings: ScanSettings,
        *,
        fetch: LogFetch | None = None,
    ) -> None:
        self._storage = storage
        self._executor = executor
        self._settings = settings
        self._fetch = fetch or storage.fetch_log_segment

    def scan(
        self,
        segments: Iterable[tuple[StoredRange, int]],
        from_offset: int,
        end_offset: int | None = None,
    ) -> RemoteScan:
        """Read segments in order, each from the batch that contains the segment's given offset.

        The last run may exceed `end_offset`. The scan takes a segment from `segments` only when the
        segment's first fetch is due, so the selection may depend on time.
        """
        requests = self._requests(segments, end_offset)
        return RemoteScan(self._prefetch(requests), from_offset, end_offset)

    def _requests(
        self, segments: Iterable[tuple[StoredRange, int]], end_offset: int | None
    ) -> Iterator[tuple[SegmentCursor, ByteRange]]:
        for stored, from_offset in segments:
            metadata = stored.metadata
            entry = OffsetIndexEntry(offset=metadata.offsets.start_offset, position=0)
            end_position = None
            if from_offset > metadata.offsets.start_offset:
                indexes = read_indexes(self._storage, metadata)
                entry = indexes.lookup(from_offset, metadata.segment_size_bytes)
                if end_offset is not None:
                    end_position = indexes.offset_index.end_position(end_offset - 1)
            cursor = SegmentCursor(stored, from_offset=from_offset, entry=entry)
            for positions in _pieces(cursor, self._settings.fetch_bytes, end_position):
                yield cursor, positions

    def _prefetch(self, requests: Iterator[tuple[SegmentCursor, ByteRange]]) -> _Fetched:
        """Fetch the requested ranges in order, up to `ahead_count` ahead of the consumer."""
        under_way: deque[tuple[SegmentCursor, Future[bytes]]] = deque()
        try:
            for cursor, positions in requests:
                metadata = cursor.stored.metadata
                future = self._executor.submit(self._fetch, metadata, positions)
                under_way.append((cursor, future))
                if len(under_way) > self._settings.ahead_count:
                    yield _taken(under_way)
            while under_way:
                yield _taken(under_way)
        finally:
            for _, future in under_way:
                future.cancel()


def _pieces(
    cursor: SegmentCursor, fetch_bytes: int, end_position: int | None
) -> Iterator[ByteRange]:
    """Yield the ranges of a segment to fetch, until its cursor is done.

    According to the index, the requested offsets end at or before `end_position`. The range after
    that position is fetched ahead, too. It is small, because the scan needs it only if compaction
    removed the last requested offsets or the index is wrong.
    """
    size = cursor.stored.metadata.segment_size_bytes
    position = cursor.position
    while position < size and not cursor.is_done:
        end = position + (_MIN_FETCH_BYTES if position == end_position else fetch_bytes)
        if end_position is not None and position < end_position < end:
            end = end_position
        end = min(end, size)
        yield ByteRange(start_position=position, end_position=end)
        position = end


def _taken(under_way: deque[tuple[SegmentCursor, Future[bytes]]]) -> tuple[SegmentCursor, bytes]:
    cursor, future = under_way.popleft()
    return cursor, future.result()
