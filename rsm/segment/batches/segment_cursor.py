"""SegmentCursor: cuts the bytes of one stored segment into runs of whole, checked record batches.

It checks each batch (rsm.segment.batches.batch_checks) before it serves it. It serves from the
batch with the requested offset to the end of the readable part. Must not know the source of the
bytes or the records in them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rsm.segment.batches.batch import PREFIX_BYTES, batch_length_bytes
from rsm.segment.batches.batch_checks import (
    RunEnd,
    append_checked,
    checked_header,
    require_index_agrees,
    require_outside,
)
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatches:
    """Whole, checked batches of one segment, in order. `data` refers to the fed bytes.

    `offsets` are those of the batches: the first may begin below the requested offset.
    """

    metadata: RemoteLogSegmentMetadata
    offsets: OffsetRange
    data: memoryview


class SegmentCursor:
    """Reads a segment from an index entry's position on, in pieces of any size. Not thread-safe.

    `stored` may be served. The first batch is the one with `from_offset`, or the next one if
    compaction removed it. Memory: one batch that spans pieces.
    """

    def __init__(self, stored: StoredRange, *, from_offset: int, entry: OffsetIndexEntry) -> None:
        self._stored = stored
        self._from_offset = from_offset
        self._entry = entry
        self._position = entry.position
        self._next_offset = stored.metadata.offsets.start_offset
        self._unfed_bytes = stored.metadata.segment_size_bytes - entry.position
        self._partial_batch = bytearray()
        self._done = False

    @property
    def stored(self) -> StoredRange:
        """The segment and its readable part."""
        return self._stored

    @property
    def position(self) -> int:
        """The position of the next batch in the log, after the last whole one."""
        return self._position

    @property
    def next_offset(self) -> int:
        """The lowest valid offset of the next batch."""
        return self._next_offset

    @property
    def done(self) -> bool:
        """Whether the segment or its readable part has ended: later bytes are not served."""
        return self._done

    def feed(self, piece: bytes) -> Iterator[StoredBatches]:
        """Yield the batches that `piece` completes, in runs; also those before a corrupt one.

        Raises CorruptError with the segment, its objects, the offset and the position; also if
        the segment's bytes end within a batch.
        """
        try:
            yield from self._runs(memoryview(piece))
        except CorruptError as error:
            raise self._corrupt("a stored batch is corrupt", reason=error) from error
        self._unfed_bytes -= len(piece)
        if self._unfed_bytes <= 0:
            if self._partial_batch:
                raise self._corrupt("a stored segment ends within a batch")
            self._done = True

    def _runs(self, view: memoryview) -> Iterator[StoredBatches]:
        if self._partial_batch:
            taken = self._complete_partial_batch(view)
            batch = memoryview(bytes(self._partial_batch))
            self._partial_batch.clear()
            yield from self._cut(batch)
            view = view[taken:]
        yield from self._cut(view)

    def _complete_partial_batch(self, view: memoryview) -> int:
        """Complete the buffered batch from `view`; return how many bytes it took."""
        taken = 0
        while taken < len(view):
            prefix = memoryview(bytes(self._partial_batch[:PREFIX_BYTES]))
            size = batch_length_bytes(prefix, 0, base_position=self._position)
            missing = (PREFIX_BYTES if size is None else size) - len(self._partial_batch)
            if missing <= 0:
                break
            more = view[taken : taken + missing]
            self._partial_batch += more
            taken += len(more)
        return taken

    def _cut(self, view: memoryview) -> Iterator[StoredBatches]:
        """Yield the whole, valid batches of `view` as one run; buffer an incomplete one."""
        if self._done:
            return
        position, end_offset = self._position, self._stored.offsets.end_offset
        run = BatchRun(position, at_least_offset=self._next_offset)
        corrupt: CorruptError | None = None
        try:
            self._extend(run, view)
        except CorruptError as error:
            corrupt = error
        if len(run) and position == self._entry.position:
            require_index_agrees(run[0].base_offset, self._entry)
        first, count = run.above(self._from_offset), run.above(end_offset)
        if count:
            self._position, self._next_offset = (
                run[count - 1].end_position,
                run[count - 1].next_offset,
            )
        if first < count:
            offsets = OffsetRange(start_offset=run[first].base_offset, end_offset=self._next_offset)
            data = view[run[first].position - position : self._position - position]
            yield StoredBatches(metadata=self._stored.metadata, offsets=offsets, data=data)
        if corrupt is not None:
            raise corrupt
        if count < len(run):
            require_outside(run[count].base_offset, end_offset)
        self._done = run.next_offset >= end_offset
        if not self._done:
            self._partial_batch += view[self._position - position :]

    def _extend(self, run: BatchRun, view: memoryview) -> None:
        """Check batch after batch up to the readable part's end or an incomplete batch."""
        metadata = self._stored.metadata
        until = RunEnd(offset=self._stored.offsets.end_offset - 1)
        while True:
            append_checked(run, view, self._position, metadata, until)
            if until.reached(run.end_position, run.next_offset):
                return
            begin = run.end_position - self._position
            size = batch_length_bytes(view, begin, base_position=self._position)
            if size is None or begin + size > len(view):
                return
            header = checked_header(
                (view[begin : begin + size],),
                metadata,
                position=run.end_position,
                at_least_offset=run.next_offset,
            )
            run.append(size, header.base_offset, header.next_offset)

    def _corrupt(self, message: str, **context: object) -> CorruptError:
        metadata = self._stored.metadata
        return CorruptError(
            message,
            segment_id=metadata.segment_id,
            objects=",".join(stored.key for stored in metadata.objects),
            offset=self._next_offset,
            position=self._position,
            **context,
        )
