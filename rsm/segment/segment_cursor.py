"""SegmentCursor: the bytes of one stored segment cut into runs of whole, checked record batches.

Each batch is checked (rsm.segment.batch_checks) before it is served. Serving begins with the
batch that holds the offset asked for and ends where the readable part ends. Must not know
where the bytes come from, nor what the records in them are. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rsm.segment.batch import PREFIX_BYTES, BatchHeader, batch_length_bytes
from rsm.segment.batch_checks import checked_header, require_index_agrees, require_outside
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatches:
    """Whole batches of one segment, in order and checked. `data` refers to the bytes fed.

    `offsets` are those of the batches: the first may begin below the offset that was asked for.
    """

    metadata: RemoteLogSegmentMetadata
    offsets: OffsetRange
    data: memoryview


class SegmentCursor:
    """Takes the bytes of a segment from an index entry's position on, in pieces of any size.

    `stored` is what may be served; the first batch served is the one that holds `from_offset`, or
    the next one where compaction left a gap. Memory: one batch that spans pieces.
    """

    def __init__(self, stored: StoredRange, *, from_offset: int, entry: OffsetIndexEntry) -> None:
        self._stored = stored
        self._from_offset = from_offset
        self._entry = entry
        self._position = entry.position
        self._next_offset = stored.metadata.offsets.start_offset
        self._unfed_bytes = stored.metadata.segment_size_bytes - entry.position
        self._held_back = bytearray()
        self._done = False

    @property
    def stored(self) -> StoredRange:
        """The segment, and what of it may be served."""
        return self._stored

    @property
    def position(self) -> int:
        """Where in the log the next batch begins: what is behind the last one that was whole."""
        return self._position

    @property
    def next_offset(self) -> int:
        """The offset that the next batch can have at the least."""
        return self._next_offset

    @property
    def done(self) -> bool:
        """Whether the segment or its readable part has ended: nothing fed now is served."""
        return self._done

    def feed(self, piece: bytes) -> Iterator[StoredBatches]:
        """Serve the batches that `piece` completes, in one run or two.

        Raises CorruptError with the segment, its objects, the offset and the position; also if
        the segment's bytes end within a batch.
        """
        try:
            yield from self._runs(memoryview(piece))
        except CorruptError as error:
            raise self._corrupt("a stored batch is corrupt", reason=error) from error
        self._unfed_bytes -= len(piece)
        if self._unfed_bytes <= 0 and not self._done:
            if self._held_back:
                raise self._corrupt("a stored segment ends within a batch")
            self._done = True

    def _runs(self, view: memoryview) -> Iterator[StoredBatches]:
        if self._held_back:
            taken = self._complete_held_back(view)
            batch = memoryview(bytes(self._held_back))
            self._held_back.clear()
            yield from self._cut(batch)
            view = view[taken:]
        yield from self._cut(view)

    def _complete_held_back(self, view: memoryview) -> int:
        """Move what is missing of the batch held back from `view`; returns how much that was."""
        taken = 0
        while taken < len(view):
            prefix = memoryview(bytes(self._held_back[:PREFIX_BYTES]))
            size = batch_length_bytes(prefix, 0, base_position=self._position)
            missing = (PREFIX_BYTES if size is None else size) - len(self._held_back)
            if missing <= 0:
                break
            more = view[taken : taken + missing]
            self._held_back += more
            taken += len(more)
        return taken

    def _cut(self, view: memoryview) -> Iterator[StoredBatches]:
        """Serve what is whole of `view` as one run; what is not whole is held back."""
        position = run_position = 0
        run_offset: int | None = None
        while not self._done:
            size = batch_length_bytes(view, position, base_position=self._position - position)
            if size is None or position + size > len(view):
                self._held_back += view[position:]
                break
            header = self._checked(view[position : position + size])
            if header.next_offset > self._stored.offsets.end_offset:
                require_outside(header.base_offset, self._stored.offsets.end_offset)
                self._done = True
                break
            position += size
            self._position += size
            self._next_offset = header.next_offset
            self._done = header.next_offset >= self._stored.offsets.end_offset
            if header.next_offset <= self._from_offset:
                run_position = position
            elif run_offset is None:
                run_offset = header.base_offset
        if run_offset is not None:
            yield StoredBatches(
                metadata=self._stored.metadata,
                offsets=OffsetRange(start_offset=run_offset, end_offset=self._next_offset),
                data=view[run_position:position],
            )

    def _checked(self, batch: memoryview) -> BatchHeader:
        """Check all of a batch that does not depend on the readable part."""
        header = checked_header(
            (batch,),
            self._stored.metadata,
            position=self._position,
            at_least_offset=self._next_offset,
        )
        if self._position == self._entry.position:
            require_index_agrees(header.base_offset, self._entry)
        return header

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
