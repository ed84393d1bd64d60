"""ChunkWindow: finds and verifies complete record batches in chunks of a stored segment's log.

A chunk may start and end within a batch. Each chunk remembers its verified batches, so that they
are verified once for all readers. A batch belongs to the chunk in which it starts, and is verified
when all its bytes are present. This module does not know where chunks come from.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rsm.segment.batches.batch_carry import BatchCarry
from rsm.segment.batches.batch_checks import (
    RunEnd,
    check_batch,
    check_run,
    require_index_agrees,
    require_outside,
)
from rsm.segment.batches.batch_run import BatchRun, LocatedBatch
from rsm.segment.batches.expectations import SegmentExpectation
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry


class SegmentChunk:
    """Represents a log's bytes from `position`. `lock` guards `run`, its verified batches."""

    def __init__(self, content: bytes | bytearray | memoryview, position: int) -> None:
        self.content = content if isinstance(content, memoryview) else memoryview(content)
        self.position = position
        self.end_position = position + len(content)
        self.run: BatchRun | None = None
        self.lock = threading.Lock()

    @property
    def unchecked_position(self) -> int | None:
        """Return where the first unverified batch starts; None if unknown."""
        if self.run is not None:
            return self.run.end_position
        return None if self.position else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStart:
    """Represents where a batch starts. `entry` is None if the start is not from the index.

    `at_least_offset` is the lowest possible offset of the batch: the offset after the previous
    batch, or 0 if that is unknown.
    """

    position: int
    entry: OffsetIndexEntry | None = None
    at_least_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Represents complete batches in [position, end_position), with offsets below `next_offset`.

    The positions are equal if the first batch exceeds the size limit.
    """

    position: int
    end_position: int
    base_offset: int
    next_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete:
    """Represents that more bytes are needed: the requested batch starts at `position` or later.

    The next attempt needs the bytes up to `end_position`. The batch at `position` has no offset
    below `next_offset`.
    """

    position: int
    end_position: int
    next_offset: int


# After this many bytes, verification ahead of fetches releases the chunk's lock for a moment.
_CHECKED_AT_ONCE_BYTES = 262_144


class ChunkWindow:
    """Represents neighboring chunks of one segment, in order, read as one. Thread-safe.

    `cut` raises CorruptError with the position; the other methods do not raise it.
    """

    def __init__(self, stored: StoredRange, chunks: Sequence[SegmentChunk]) -> None:
        self._stored = stored
        self._chunks = chunks
        self._end_position = chunks[-1].end_position

    def check_on(self, position: int) -> int:
        """Verify batches from `position`; return where the first unverified one starts.

        If that position is within the window, the batch there is incomplete or corrupt. A later
        `cut` at a corrupt batch raises the error.
        """
        next_offset = 0
        with suppress(CorruptError):
            for chunk in self._chunks:
                position, next_offset = self._check_chunk(chunk, position, next_offset)
                if position < chunk.end_position:
                    break
        return position

    def view(self, position: int, end_position: int) -> tuple[memoryview, ...]:
        """Return the bytes of a range in the window, as views of its chunks."""
        return tuple(
            chunk.content[max(position - chunk.position, 0) : end_position - chunk.position]
            for chunk in self._chunks
            if chunk.position < end_position and position < chunk.end_position
        )

    def cut(
        self, begin: BatchStart, offset: int, *, max_bytes: int, min_one_batch: bool
    ) -> Cut | Incomplete | None:
        """Return complete batches within `max_bytes`; the first one ends at `offset` or later.

        `begin` is the start of that batch or of an earlier one. Returns Incomplete if the window
        lacks bytes, None if the segment's readable part has no such batch.
        """
        first = self._find(begin, offset)
        if isinstance(first, Incomplete):
            return first
        if first is None or not self._is_readable(first):
            return None
        end_position, next_offset = first.end_position, first.next_offset
        limit_position = first.position + max_bytes
        if end_position < limit_position:
            end_position, next_offset = self._reach(first, limit_position)
        elif end_position > limit_position and not min_one_batch:
            end_position, next_offset = first.position, first.base_offset
        return Cut(
            position=first.position,
            end_position=end_position,
            base_offset=first.base_offset,
            next_offset=next_offset,
        )

    def checked(self, position: int, offset: int, *, max_bytes: int) -> Cut | None:
        """Return verified batches, like `cut`; None if the batch at `position` is not verified.

        That batch has no offset below `offset`, and is returned whatever its size. This method
        neither verifies nor waits.
        """
        begin_position, base_offset, next_offset = position, offset, offset
        limit_position = min(position + max_bytes, self._end_position)
        for chunk in self._chunks:
            if position >= chunk.end_position:
                continue
            is_first = position == begin_position
            found = self._checked_span(chunk, position, limit_position, at_least_count=is_first)
            if found is None or found.base_offset < next_offset:
                break
            base_offset = found.base_offset if is_first else base_offset
            position, next_offset = found.end_position, found.next_offset
        if next_offset <= offset or position > self._end_position:
            return None
        return Cut(
            position=begin_position,
            end_position=position,
            base_offset=base_offset,
            next_offset=next_offset,
        )

    def _checked_span(
        self, chunk: SegmentChunk, position: int, limit_position: int, *, at_least_count: int
    ) -> LocatedBatch | None:
        """Return the chunk's verified batches; None if there are none, or if the lock is taken."""
        if not chunk.lock.acquire(blocking=False):
            return None
        try:
            if chunk.run is None:
                return None
            return chunk.run.span(
                position,
                limit_position=limit_position,
                end_offset=self._stored.offsets.end_offset,
                at_least_count=at_least_count,
            )
        finally:
            chunk.lock.release()

    def _find(self, begin: BatchStart, offset: int) -> LocatedBatch | Incomplete | None:
        """Return the first batch that ends at `offset` or later; None at the segment's end."""
        position, next_offset = begin.position, begin.at_least_offset
        for chunk in self._chunks:
            if position >= chunk.end_position:
                continue
            with chunk.lock:
                run = self._run_from(chunk, position, next_offset)
                self._extend(chunk, run, RunEnd(offset=offset))
                if begin.entry is not None and position == begin.position:
                    self._require_agrees(run, begin.entry)
                number = run.above(offset)
                if number < len(run):
                    return self._whole(run[number])
                position, next_offset = run.end_position, run.next_offset
            if position < chunk.end_position:
                break
        if position >= self._stored.metadata.segment_size_bytes:
            return None
        end_position = self._carry(position).end_position
        return Incomplete(position=position, end_position=end_position, next_offset=next_offset)

    def _reach(self, first: LocatedBatch, limit_position: int) -> tuple[int, int]:
        """Return the end of the complete, correct and readable batches that begin with `first`."""
        position, next_offset = first.end_position, first.next_offset
        limit_position = min(limit_position, self._end_position)
        for chunk in self._chunks:
            if position >= chunk.end_position:
                continue
            # Batches before a corrupt one are correct; a request for that one gets the error.
            with suppress(CorruptError), chunk.lock:
                run = self._run_from(chunk, position, next_offset)
                with suppress(CorruptError):
                    self._extend(chunk, run, RunEnd(position=limit_position))
                count = min(run.within(limit_position), run.above(self._stored.offsets.end_offset))
                if count and run[count - 1].end_position > position:
                    position, next_offset = run[count - 1].end_position, run[count - 1].next_offset
            if position < chunk.end_position:
                break
        return position, next_offset

    def _check_chunk(self, chunk: SegmentChunk, position: int, next_offset: int) -> tuple[int, int]:
        """Verify a chunk's batches; return the position and the least offset of the next one.

        `next_offset` is the lowest valid offset of the batch at `position`.
        """
        while position < chunk.end_position:
            with chunk.lock:
                run = self._run_from(chunk, position, next_offset)
                with suppress(CorruptError):
                    until = RunEnd(position=run.end_position + _CHECKED_AT_ONCE_BYTES)
                    self._extend(chunk, run, until)
                if run.end_position == position:
                    break
                position, next_offset = run.end_position, run.next_offset
        return position, next_offset

    def _whole(self, batch: LocatedBatch) -> LocatedBatch | Incomplete:
        """Return the batch, or Incomplete if its end is not in this window."""
        if batch.end_position <= self._end_position:
            return batch
        return Incomplete(
            position=batch.position,
            end_position=batch.end_position,
            next_offset=batch.base_offset,
        )

    def _is_readable(self, batch: LocatedBatch) -> bool:
        if batch.next_offset <= self._stored.offsets.end_offset:
            return True
        require_outside(batch.base_offset, self._stored.offsets.end_offset)
        return False

    def _run_from(self, chunk: SegmentChunk, position: int, at_least_offset: int) -> BatchRun:
        """Return the chunk's run, extended so that the batch at `position` is in it or next."""
        run = self._run_at(position, at_least_offset) if chunk.run is None else chunk.run
        if position < run.position:
            run = self._started_earlier(chunk, run, position, at_least_offset)
        chunk.run = run
        self._extend(chunk, run, RunEnd(position=position))
        run.require_start(position, at_least_offset=at_least_offset)
        return run

    def _run_at(self, position: int, at_least_offset: int) -> BatchRun:
        start_offset = self._stored.metadata.offsets.start_offset
        return BatchRun(position, at_least_offset=max(start_offset, at_least_offset))

    def _extend(self, chunk: SegmentChunk, run: BatchRun, until: RunEnd) -> None:
        """Verify the complete batches that start in the chunk, up to `until`."""
        if _is_at_end(chunk, run, until):
            return
        expectation = SegmentExpectation(self._stored.metadata)
        check_run(run, chunk.content, chunk.position, expectation, until)
        if _is_at_end(chunk, run, until):
            return
        carry = self._carry(run.end_position)
        if carry.is_whole:
            check_batch(run, carry.pieces, expectation)

    def _carry(self, position: int) -> BatchCarry:
        """Return the present bytes of the batch at `position`; it may end in a later chunk."""
        carry = BatchCarry(position)
        for piece in self.view(position, self._end_position):
            carry.take(piece)
            if carry.is_whole:
                break
        if carry.end_position > self._stored.metadata.segment_size_bytes:
            raise CorruptError("a stored segment ends within a batch", position=position)
        return carry

    def _started_earlier(
        self, chunk: SegmentChunk, run: BatchRun, position: int, at_least_offset: int
    ) -> BatchRun:
        earlier = self._run_at(position, at_least_offset)
        self._extend(chunk, earlier, RunEnd(position=run.position))
        if earlier.end_position != run.position:
            raise CorruptError("no batch begins at the position", position=run.position)
        if len(run) and run[0].base_offset < earlier.next_offset:
            raise CorruptError(
                "the log is corrupt: the batch's offsets are outside the expected range",
                position=run.position,
            )
        earlier.extend(run)
        return earlier

    def _require_agrees(self, run: BatchRun, entry: OffsetIndexEntry) -> None:
        number = run.within(entry.position)
        if number < len(run):
            require_index_agrees(run[number].base_offset, entry)


def _is_at_end(chunk: SegmentChunk, run: BatchRun, until: RunEnd) -> bool:
    return run.end_position >= chunk.end_position or until.is_reached(
        run.end_position, run.next_offset
    )
