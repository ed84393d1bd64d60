"""SequentialReaders: where each reader will read on, and what is read ahead for it.

Who asks for what follows its last answer needs no index, and gets the next chunks before it asks:
those of its segment, then those of the segments behind it. Only for the second fetch in a row and
on, so that a single look into the log costs one chunk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from rlm.policy.coverage import StoredRange
from rlm.remote_read.chunk_window import Begin, Cut
from rlm.remote_read.locate import NotStored, locate
from rlm.remote_read.read_ahead_depth import ReadAheadDepth
from rlm.remote_read.segment_parts import SegmentPart, SegmentParts
from rlmm.spi import RemoteLogMetadataManager
from rsm.cache.chunk_cache import ChunkCache
from rsm.cache.chunk_lease import ChunkRequest
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReader:
    """One reader of one partition. `client` is whatever tells a client from others."""

    client: Hashable
    topic_id_partition: TopicIdPartition
    read_committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What a reader was given last: [position, end_position) of a segment.

    It reads on if it asks for what follows; or for the same again, where its answer was not sent.
    """

    segment_id: RemoteLogSegmentId
    asked_offset: int
    next_offset: int
    position: int
    end_position: int
    depth: ReadAheadDepth

    def reads_on(self, offset: int) -> bool:
        return offset in (self.next_offset, self.asked_offset)


class SequentialReaders:
    """The `limit_count` readers that read last. Thread-safe.

    Memory: some 500 bytes for each; what is read ahead counts in the cache.
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
        self._places: OrderedDict[PartitionReader, _Place] = OrderedDict()
        self._lock = threading.Lock()

    def asks(self, reader: PartitionReader, offset: int) -> None:
        """A fetch begins: a reader that jumps gives up what was read ahead for it."""
        place = self._place(reader)
        if place is not None and not place.reads_on(offset):
            self._cache.leave(reader)

    def begin(self, reader: PartitionReader, stored: StoredRange, offset: int) -> Begin | None:
        """Where to look for the batch of `offset`; None if an index must tell."""
        place = self._place(reader)
        if place is not None and place.segment_id == stored.metadata.segment_id:
            if offset == place.next_offset:
                return Begin(position=place.end_position)
            if offset == place.asked_offset:
                return Begin(position=place.position)
        if offset <= stored.metadata.offsets.start_offset:
            return Begin(position=0)
        return None

    def has_read(
        self,
        reader: PartitionReader,
        asked_offset: int,
        stored: StoredRange,
        cut: Cut,
        *,
        waited: bool,
    ) -> None:
        """The reader asked for an offset, waited for the store or not, and is given `cut`."""
        before = self._place(reader)
        reads_on = before is not None and before.reads_on(asked_offset)
        depth = self._first_depth
        if before is not None and reads_on:
            depth = before.depth
            if self._is_next_chunk(before, stored, cut):
                depth = depth.after(waited=waited)
        place = _Place(
            segment_id=stored.metadata.segment_id,
            asked_offset=asked_offset,
            next_offset=cut.next_offset,
            position=cut.position,
            end_position=cut.end_position,
            depth=depth,
        )
        self._remember(reader, place)
        if reads_on:
            self._read_ahead(reader, stored, place)

    def forget(self, client: Hashable) -> None:
        """A client has gone. Idempotent."""
        with self._lock:
            gone = [reader for reader in self._places if reader.client == client]
            for reader in gone:
                del self._places[reader]
        for reader in gone:
            self._cache.leave(reader)

    def _place(self, reader: PartitionReader) -> _Place | None:
        with self._lock:
            return self._places.get(reader)

    def _is_next_chunk(self, before: _Place, stored: StoredRange, cut: Cut) -> bool:
        """Whether the reader needs a chunk that it was not given before."""
        if before.segment_id != stored.metadata.segment_id:
            return True
        given = self._parts.chunk_index(max(before.end_position - 1, 0))
        return self._parts.chunk_index(cut.position) > given

    def _remember(self, reader: PartitionReader, place: _Place) -> None:
        with self._lock:
            self._places[reader] = place
            self._places.move_to_end(reader)
            if len(self._places) <= self._limit_count:
                return
            gone, _ = self._places.popitem(last=False)
        self._cache.leave(gone)

    def _read_ahead(self, reader: PartitionReader, stored: StoredRange, place: _Place) -> None:
        """Until enough is in memory or under way, or there is no room for more."""
        next_index = self._parts.chunk_index(max(place.end_position - 1, 0)) + 1
        for number, request in enumerate(self._behind(reader, stored, next_index)):
            if number == place.depth.chunk_count:
                return
            if not self._cache.read_ahead(request, reader=reader):
                return

    def _behind(
        self, reader: PartitionReader, stored: StoredRange, index: int
    ) -> Iterator[ChunkRequest[SegmentPart]]:
        """What a reader will ask for, from chunk `index` of a segment on."""
        while True:
            for number in range(index, self._parts.chunk_count(stored.metadata)):
                yield self._parts.chunk(stored.metadata, number)
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
