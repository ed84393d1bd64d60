"""SegmentParts: builds requests for the cached units of stored segments: chunks and indexes.

This module decides how a segment is divided for a chunk cache, and the size at which the cache
counts each part. Other modules look up offsets and positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from traceback import clear_frames

from rlm.remote_read.chunk_window import ChunkWindow, SegmentChunk
from rlm.remote_read.segment_division import SegmentDivision
from rsm.cache.chunk_buffers import ChunkBuffers
from rsm.cache.chunk_lease import ChunkRequest
from rsm.cache.chunk_table import ChunkKey
from rsm.read.segment_indexes import SegmentIndexes, read_indexes
from rsm.read.unreadable_segment import naming_segment
from rsm.segment.clock import Clock
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError, TieredStorageError
from rsm.segment.indexes import TimeIndex
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import RemoteStorageManager

SegmentPart = SegmentChunk | SegmentIndexes | TimeIndex

INDEXES = "indexes"
_AFTER_KEY = "|"  # The last `|` of a name ends the key, because a key may contain others.


class SegmentParts:
    """Builds requests for the parts of segments in `storage`. Thread-safe.

    Their `load` raises what the storage raises; NotFoundError and CorruptError name the segment.
    `peek` returns a part that is in memory, else None.
    """

    def __init__(
        self,
        storage: RemoteStorageManager,
        *,
        division: SegmentDivision,
        buffers: ChunkBuffers,
        clock: Clock,
        peek: Callable[[ChunkKey], SegmentPart | None],
    ) -> None:
        self._storage = storage
        self._division = division
        self._buffers = buffers
        self._clock = clock
        self._peek = peek

    def chunk_index(self, metadata: RemoteLogSegmentMetadata, position: int) -> int:
        """Return the number of the chunk that contains the byte at `position`."""
        return position // self._division.chunk_bytes(metadata.segment_id)

    def chunk_count(self, metadata: RemoteLogSegmentMetadata) -> int:
        return -(-metadata.segment_size_bytes // self._division.chunk_bytes(metadata.segment_id))

    def chunk_keys(
        self, metadata: RemoteLogSegmentMetadata, indexes: Iterable[int]
    ) -> list[ChunkKey]:
        chunk_bytes = self._division.chunk_bytes(metadata.segment_id)
        name = part_name(metadata.objects[0].key, str(chunk_bytes))
        return [ChunkKey(name, index) for index in indexes]

    def known_chunk_key(self, metadata: RemoteLogSegmentMetadata, position: int) -> ChunkKey | None:
        """Return the key of the chunk at `position`; None if the segment is not divided yet."""
        if self._division.known_chunk_bytes(metadata.segment_id) is None:
            return None
        return self.chunk_keys(metadata, [self.chunk_index(metadata, position)])[0]

    def chunk(
        self, metadata: RemoteLogSegmentMetadata, index: int, *, is_ahead: bool = False
    ) -> ChunkRequest[SegmentPart]:
        """Return the request for one chunk of the log; the last chunk of a segment may be shorter.

        With `is_ahead`, the reading thread also verifies the chunk's batches, and the batches of
        neighbors that lacked only this chunk. Fetches then do not wait for the verification.
        """
        chunk_bytes = self._division.chunk_bytes(metadata.segment_id)
        positions = ByteRange(
            start_position=index * chunk_bytes,
            end_position=min((index + 1) * chunk_bytes, metadata.segment_size_bytes),
        )
        return ChunkRequest(
            key=self.chunk_keys(metadata, (index,))[0],
            size_bytes=self._buffers.buffered_bytes(len(positions)),
            load=partial(self._read_chunk, metadata, positions),
            loaded=partial(self._check_around, metadata, index) if is_ahead else None,
        )

    def span(
        self, metadata: RemoteLogSegmentMetadata, position: int, end_position: int
    ) -> ChunkRequest[SegmentPart]:
        """Return the request for [position, end_position) of the log, as a separate chunk.

        It loads faster than regular chunks, but serves only requests for the same range.
        """
        positions = ByteRange(
            start_position=position, end_position=min(end_position, metadata.segment_size_bytes)
        )
        name = part_name(metadata.objects[0].key, f"+{len(positions)}")
        return ChunkRequest(
            key=ChunkKey(name, position),
            size_bytes=self._buffers.buffered_bytes(len(positions)),
            load=partial(self._read_chunk, metadata, positions),
            loaded=partial(self._buffers.make_ready, len(positions)),
        )

    def indexes_key(self, metadata: RemoteLogSegmentMetadata) -> ChunkKey:
        return ChunkKey(part_name(metadata.objects[-1].key, INDEXES), 0)

    def indexes(self, metadata: RemoteLogSegmentMetadata) -> ChunkRequest[SegmentPart]:
        """Return the request for a segment's indexes, which count with their object's size."""
        return ChunkRequest(
            key=self.indexes_key(metadata),
            size_bytes=metadata.objects[-1].length_bytes or 1,
            load=partial(read_indexes, self._storage, metadata),
        )

    def _read_chunk(self, metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> SegmentChunk:
        started_ms = self._clock.monotonic_ms()
        buffer = self._buffers.take(len(positions))
        try:
            self._read_into(metadata, positions, buffer)
        except TieredStorageError as error:
            _forget_locals(error)
            del buffer
            raise
        self._division.record_read(len(positions), self._clock.monotonic_ms() - started_ms)
        return SegmentChunk(buffer, positions.start_position)

    def _read_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, buffer: memoryview
    ) -> None:
        with naming_segment(metadata, positions=positions):
            read_bytes = self._storage.fetch_log_segment_into(metadata, positions, buffer)
            if read_bytes != len(positions):  # The rest of the buffer contains older data.
                raise CorruptError(
                    "the stored segment is shorter than its record says", read=read_bytes
                )

    def _check_around(self, metadata: RemoteLogSegmentMetadata, index: int) -> None:
        """Verify the batches that a chunk completes, from the last known start of a batch.

        That start may be in an earlier chunk if all chunks in between are in memory.
        """
        chunk = self._chunk_in_memory(metadata, index)
        while chunk is not None and chunk.unchecked_position is None:
            index -= 1
            chunk = self._chunk_in_memory(metadata, index)
        position = None if chunk is None else chunk.unchecked_position
        whole = StoredRange(metadata=metadata, offsets=metadata.offsets)
        while chunk is not None and position is not None:
            index += 1
            following = self._chunk_in_memory(metadata, index)
            window = [chunk] if following is None else [chunk, following]
            position = ChunkWindow(whole, window).check_on(position)
            if position < chunk.end_position:
                return
            chunk = following

    def _chunk_in_memory(
        self, metadata: RemoteLogSegmentMetadata, index: int
    ) -> SegmentChunk | None:
        (key,) = self.chunk_keys(metadata, (index,))
        found = self._peek(key)
        return found if isinstance(found, SegmentChunk) else None


def part_name(object_key: str, part: str) -> str:
    """Return the chunk cache's name for an object's parts of one kind."""
    return f"{object_key}{_AFTER_KEY}{part}"


def object_of_part(name: str) -> str:
    """Return the key of the object that contains the parts of this name."""
    return name.rpartition(_AFTER_KEY)[0]


def read_stored(
    storage: RemoteStorageManager, metadata: RemoteLogSegmentMetadata, positions: ByteRange
) -> bytes:
    """Read bytes of a segment's log. NotFoundError and CorruptError name the segment."""
    with naming_segment(metadata, positions=positions):
        return storage.fetch_log_segment(metadata, positions)


def _forget_locals(error: BaseException | None) -> None:
    """Clear the frames of an error and its causes, which would keep read buffers in memory."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__
