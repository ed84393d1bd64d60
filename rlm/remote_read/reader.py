"""Reads the stored part of a partition as runs of verified record batches.

rlmm.lookup finds the segments, and rsm.read.segment_scan reads them, for one consumer of a large
range. rlm.gateway.remote.fetcher serves many readers, each of a few batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial

from rlm.remote_read.segment_parts import read_stored
from rlmm.lookup import NotStored, locate
from rlmm.spi import RemoteLogMetadataManager
from rsm.read.segment_indexes import read_time_index
from rsm.read.segment_scan import RemoteScan, RemoteScanner, ScanSettings
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import TopicIdPartition
from rsm.segment.indexes import TimeIndex
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import RemoteStorageManager

Lookup = Callable[[int], StoredRange | NotStored]
"""Returns the stored range from which to read an offset; NotStored if no segment serves it."""


class LookedUpReader:
    """Reads the segments that a lookup finds. Thread-safe; a scan belongs to one thread.

    `executor` runs only fetches, and limits how many run at once.
    """

    def __init__(
        self,
        storage: RemoteStorageManager,
        executor: Executor,
        settings: ScanSettings | None = None,
    ) -> None:
        self._storage = storage
        self._scanner = RemoteScanner(
            storage, executor, settings or ScanSettings(), fetch=partial(read_stored, storage)
        )

    def scan_log(
        self, look_up: Lookup, from_offset: int, end_offset: int | None = None
    ) -> RemoteScan:
        """Read from the batch that contains `from_offset`; the last run may exceed `end_offset`.

        The scan ends at the first offset that no stored segment serves.
        """
        return self._scanner.scan(
            _segments(look_up, from_offset, end_offset), from_offset, end_offset
        )

    def time_index(self, metadata: RemoteLogSegmentMetadata) -> TimeIndex:
        """Return a segment's time index. Raises NotFoundError, CorruptError, RetriableError."""
        return read_time_index(self._storage, metadata)

    def scan_segment(self, stored: StoredRange, from_offset: int) -> RemoteScan:
        """Read one segment to the end of its readable part."""
        return self._scanner.scan([(stored, from_offset)], from_offset)


class RemoteLogReader(LookedUpReader):
    """Reads the segments that the metadata lists. Thread-safe like its base class."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        storage: RemoteStorageManager,
        executor: Executor,
        settings: ScanSettings | None = None,
    ) -> None:
        super().__init__(storage, executor, settings)
        self._metadata = metadata

    def scan(
        self, topic_id_partition: TopicIdPartition, from_offset: int, end_offset: int | None = None
    ) -> RemoteScan:
        """Read a partition as `scan_log` does."""
        look_up = partial(locate, self._metadata, topic_id_partition)
        return self.scan_log(look_up, from_offset, end_offset)


def _segments(
    look_up: Lookup, from_offset: int, end_offset: int | None
) -> Iterator[tuple[StoredRange, int]]:
    """Yield the segments in order, each with the offset to start at."""
    offset = from_offset
    while end_offset is None or offset < end_offset:
        stored = look_up(offset)
        if isinstance(stored, NotStored):
            return
        yield stored, offset
        offset = stored.offsets.end_offset
