"""Records where each reader will continue, and prefetches the next chunks for it.

A reader that requests the offset after its last response needs no offset index. The gateway
prefetches the next chunks of its segment and of the following segments. Prefetching starts with the
reader's second sequential fetch, so that a single fetch prefetches nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from rlm.gateway.remote.read_ahead_depth import ReadAheadDepth
from rlm.remote_read.chunk_window import BatchStart, Cut
from rlm.remote_read.segment_parts import SegmentPart, SegmentParts
from rlmm.lookup import NotStored, locate
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.partition_state import PartitionState
from rsm.cache.chunk_cache import ChunkCache
from rsm.cache.chunk_lease import ChunkRequest
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import TopicIdPartition


class SequentialReader(NamedTuple):
    """Represents one reader of one partition. `client` is any value that identifies the client."""

    client: Hashable
    topic_id_partition: TopicIdPartition
    read_committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedSegment:
    """Represents a stored segment, with the partition's metadata at the time of the lookup."""

    stored: StoredRange
    state: PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReaderState:
    """Represents what a reader received last: bytes [position, end_position) of a segment.

    The reader continues if it requests the next offset, or the same offset again because it got no
    response. `last_index` is the last chunk from which it received bytes. `is_ahead`: all chunks to
    prefetch for it are in memory or being read.
    """

    located: LocatedSegment
    asked_offset: int
    next_offset: int
    position: int
    end_position: int
    last_index: int
    depth: ReadAheadDepth
    is_ahead: bool

    def reads_on(self, offset: int) -> bool:
        return offset in (self.next_offset, self.asked_offset)

    def is_in(self, stored: StoredRange) -> bool:
        known = self.located.stored
        return known is stored or known.metadata.segment_id == stored.metadata.segment_id


class SequentialReaders:
    """Represents the `limit_count` most recent readers. Thread-safe.

    Memory: about 3 KiB for each reader. The cache counts the prefetched data.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        cache: ChunkCache[SegmentPart],
        parts: SegmentParts,
        first_depth: ReadAheadDepth,
        limit_count: int,
    ) -> None:
        self._metadata = metadata
        self._cache = cache
        self._parts = parts
        self._first_depth = first_depth
        self._limit_count = limit_count
        self._reader_states: OrderedDict[SequentialReader, _ReaderState] = OrderedDict()
        self._lock = threading.Lock()

    def check_sequential(self, reader: SequentialReader, offset: int) -> bool:
        """Return whether a fetch requests its reader's next offset, not the last one again.

        Releases the reader's share of the cache if the reader continues elsewhere.
        """
        reader_state = self._reader_state(reader)
        if reader_state is None:
            return False
        if not reader_state.reads_on(offset):
            self._cache.leave(reader)
        return offset == reader_state.next_offset

    def begin(
        self, reader: SequentialReader, stored: StoredRange, offset: int
    ) -> BatchStart | None:
        """Return where to look for the batch of `offset`; None if an index must be read."""
        reader_state = self._reader_state(reader)
        if reader_state is not None and reader_state.is_in(stored):
            if offset == reader_state.next_offset:
                return _after(reader_state)
            if offset == reader_state.asked_offset:
                return BatchStart(position=reader_state.position)
        if offset <= stored.metadata.offsets.start_offset:
            return BatchStart(position=0)
        return None

    def continued(
        self, reader: SequentialReader, offset: int, state: PartitionState
    ) -> tuple[LocatedSegment, BatchStart] | None:
        """Return where a reader continues in the segment that it received last.

        Returns None if it reads elsewhere, or if the partition's metadata has changed: log start,
        lineage and deletions decide what may be served.
        """
        reader_state = self._reader_state(reader)
        if reader_state is None or offset != reader_state.next_offset:
            return None
        if reader_state.located.state is not state and reader_state.located.state != state:
            return None
        if offset not in reader_state.located.stored.offsets:
            return None
        return reader_state.located, _after(reader_state)

    def prefetch_next(self, reader: SequentialReader, stored: StoredRange, position: int) -> None:
        """Prefetch the chunks after the one at `position`, for which a sequential reader waits.

        The wait increases the depth only if the prefetch was complete.
        """
        before = self._reader_state(reader)
        if before is None:
            return
        depth = before.depth.after_waiting() if before.is_ahead else before.depth
        index = self._parts.chunk_index(stored.metadata, position) + 1
        ahead_bytes = depth.bytes_for(before.end_position - before.position)
        is_ahead = self._read_ahead(reader, stored, index, ahead_bytes)
        after = replace(before, depth=depth, is_ahead=is_ahead)
        with self._lock:
            # The reader may have left or continued meanwhile.
            if self._reader_states.get(reader) is before:
                self._reader_states[reader] = after

    def record_read(
        self,
        reader: SequentialReader,
        asked_offset: int,
        located: LocatedSegment,
        cut: Cut,
        *,
        waited: bool,
    ) -> None:
        """Record a reader's request and the `cut` that it receives; prefetch the next chunks."""
        stored, before = located.stored, self._reader_state(reader)
        last_index = self._parts.chunk_index(stored.metadata, max(cut.end_position - 1, 0))
        is_ahead, depth = False, self._first_depth
        if before is not None and before.reads_on(asked_offset):
            is_ahead, depth = before.is_ahead, before.depth
            if last_index > before.last_index or not before.is_in(stored):
                # The reader has reached another chunk.
                depth = depth.after_in_time() if is_ahead and not waited else depth
                is_ahead = False
            if not is_ahead:
                ahead_bytes = depth.bytes_for(cut.end_position - cut.position)
                is_ahead = self._read_ahead(reader, stored, last_index + 1, ahead_bytes)
        reader_state = _ReaderState(
            located=located,
            asked_offset=asked_offset,
            next_offset=cut.next_offset,
            position=cut.position,
            end_position=cut.end_position,
            last_index=last_index,
            depth=depth,
            is_ahead=is_ahead,
        )
        self._remember(reader, reader_state)

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client's readers. Idempotent."""
        with self._lock:
            gone = [reader for reader in self._reader_states if reader.client == client]
            for reader in gone:
                del self._reader_states[reader]
        for reader in gone:
            self._cache.leave(reader)

    def _reader_state(self, reader: SequentialReader) -> _ReaderState | None:
        with self._lock:
            return self._reader_states.get(reader)

    def _remember(self, reader: SequentialReader, reader_state: _ReaderState) -> None:
        with self._lock:
            self._reader_states[reader] = reader_state
            self._reader_states.move_to_end(reader)
            if len(self._reader_states) <= self._limit_count:
                return
            gone, _ = self._reader_states.popitem(last=False)
        self._cache.leave(gone)

    def _read_ahead(
        self, reader: SequentialReader, stored: StoredRange, index: int, left_bytes: int
    ) -> bool:
        """Prefetch `left_bytes`; cached chunks count too. Return False if the cache has no room."""
        for request in self._following(reader, stored, index):
            if left_bytes <= 0:
                break
            if not self._cache.read_ahead(request, reader=reader):
                return False
            left_bytes -= request.size_bytes
        return True

    def _following(
        self, reader: SequentialReader, stored: StoredRange, index: int
    ) -> Iterator[ChunkRequest[SegmentPart]]:
        """Yield the likely requests of a reader, beginning with chunk `index` of a segment."""
        while True:
            for number in range(index, self._parts.chunk_count(stored.metadata)):
                yield self._parts.chunk(stored.metadata, number, is_ahead=True)
            end_offset = stored.offsets.end_offset
            following = locate(self._metadata, reader.topic_id_partition, end_offset)
            if (
                isinstance(following, NotStored)
                or following.metadata.offsets.start_offset != end_offset
            ):
                return
            stored, index = following, 0
            if reader.read_committed:
                yield self._parts.indexes(stored.metadata)


def _after(reader_state: _ReaderState) -> BatchStart:
    """Return where the batch after the last received one starts."""
    return BatchStart(position=reader_state.end_position, at_least_offset=reader_state.next_offset)
