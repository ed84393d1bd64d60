"""Divides the bytes of one stored segment into runs of whole, checked record batches.

A cursor checks each batch (rsm.segment.batches.batch_checks) before it returns the batch. It begins
with the batch that contains the requested offset, and ends at the end of the readable part. This
module does not know the source of the bytes or the records in them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rsm.segment.batches.batch_checks import RunEnd, require_index_agrees, require_outside
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.batches.batch_stream import BatchStream
from rsm.segment.batches.expectations import SegmentExpectation
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata, short_keys
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatches:
    """Represents whole, checked batches of one segment, in order.

    `data` may refer to the fed bytes. `offsets` are those of the batches: the first batch may begin
    below the requested offset.
    """

    metadata: RemoteLogSegmentMetadata
    offsets: OffsetRange
    data: memoryview


class SegmentCursor:
    """Checks a segment, which arrives in pieces of any size from an index entry's position.

    Not thread-safe. `stored` names the segment and its readable part. The first batch is the one
    that contains `from_offset`; the next one if compaction removed it. Memory: one batch that
    crosses pieces.
    """

    def __init__(self, stored: StoredRange, *, from_offset: int, entry: OffsetIndexEntry) -> None:
        self._stored = stored
        self._from_offset = from_offset
        self._entry = entry
        self._position = entry.position
        self._next_offset = stored.metadata.offsets.start_offset
        self._unfed_bytes = stored.metadata.segment_size_bytes - entry.position
        self._batches = BatchStream(
            SegmentExpectation(stored.metadata),
            position=entry.position,
            next_offset=self._next_offset,
            until=RunEnd(offset=stored.offsets.end_offset - 1),
        )
        self._done = False

    @property
    def stored(self) -> StoredRange:
        """Return the segment and its readable part."""
        return self._stored

    @property
    def position(self) -> int:
        """Return the position of the next batch in the log, after the last whole one."""
        return self._position

    @property
    def next_offset(self) -> int:
        """Return the lowest valid offset of the next batch."""
        return self._next_offset

    @property
    def is_done(self) -> bool:
        """Return whether the readable part has ended; the cursor ignores later bytes."""
        return self._done

    def feed(self, piece: bytes) -> Iterator[StoredBatches]:
        """Yield the batches that `piece` completes, in runs; if one is corrupt, those before it.

        Raises CorruptError if a batch is corrupt or the segment ends within a batch. The error
        names the segment, its objects, the offset and the position.
        """
        if self._done:
            return
        try:
            for run, data in self._batches.feed(piece):
                yield from self._readable(run, data)
                if self._done:
                    return
        except CorruptError as error:
            raise self._corrupt("a stored batch is corrupt", reason=error) from error
        self._unfed_bytes -= len(piece)
        if self._unfed_bytes <= 0:
            if self._batches.incomplete_bytes:
                raise self._corrupt("a stored segment ends within a batch")
            self._done = True

    def _readable(self, run: BatchRun, data: Sequence[memoryview]) -> Iterator[StoredBatches]:
        """Yield the batches of a run from the requested offset to the readable part's end."""
        end_offset = self._stored.offsets.end_offset
        if run.position == self._entry.position:
            require_index_agrees(run[0].base_offset, self._entry)
        first, count = run.above(self._from_offset), run.above(end_offset)
        if count:
            last = run[count - 1]
            self._position, self._next_offset = last.end_position, last.next_offset
        if first < count:
            begin = run[first]
            view = data[0] if len(data) == 1 else memoryview(b"".join(data))
            yield StoredBatches(
                metadata=self._stored.metadata,
                offsets=OffsetRange(start_offset=begin.base_offset, end_offset=self._next_offset),
                data=view[begin.position - run.position : self._position - run.position],
            )
        if count < len(run):
            require_outside(run[count].base_offset, end_offset)
        self._done = run.next_offset >= end_offset

    def _corrupt(self, message: str, **context: object) -> CorruptError:
        metadata = self._stored.metadata
        return CorruptError(
            message,
            segment_id=metadata.segment_id,
            objects=",".join(short_keys(metadata.object_keys)),
            offset=self._next_offset,
            position=self._position,
            **context,
        )
