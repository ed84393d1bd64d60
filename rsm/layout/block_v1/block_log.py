"""Encodes a log segment as a data object in block format v1: each record batch is an entry.

The caller plans the blocks from the batches' lengths. One pass copies the log's chunks into the
object's chunks. Pure.

Memory: one buffer of `_BUFFER_BYTES`; it does not depend on the batches' lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rsm.layout.blocks.block_format import ENTRY_HEADER, ENTRY_HEADER_BYTES, HEADER_BYTES, padding
from rsm.layout.blocks.block_plan import BlockedSource, PlannedBlock
from rsm.segment.batches.batch import LOG_OVERHEAD_BYTES
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import ContentSource

_BUFFER_BYTES = 1 << 20
# A larger piece is not copied: it is passed on as a view of the log's chunk.
_COPIED_BYTES = 64 << 10
_BATCH_LENGTH = struct.Struct(">8xi")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedLog(BlockedSource):
    """Represents `log` as a PartedSource, with the log's batches divided into `blocks`.

    A pass raises the errors of `log`, and RetriableError if the batches do not match `blocks`.
    """

    log: ContentSource

    def chunks(self) -> Iterator[memoryview]:
        passing = _Pass(self.blocks)
        for view in self.log.chunks():
            yield from passing.feed(view)
        yield from passing.finish()


class _Pass:
    """The state of one pass: its position in the blocks and in the batch, and buffered output."""

    def __init__(self, blocks: Sequence[PlannedBlock]) -> None:
        self._following = iter(blocks)
        self._block: PlannedBlock | None = None
        self._end_entry_id = 0
        self._next_entry_id = 0
        self._left_in_block_bytes = 0
        self._left_in_batch_bytes = 0
        # This buffers the first bytes of a batch until its length is known.
        self._started = bytearray()
        self._out = memoryview(bytearray(_BUFFER_BYTES))
        self._filled_bytes = 0

    def feed(self, view: memoryview) -> Iterator[memoryview]:
        """Take the log's next bytes; yield those bytes of the object that are ready."""
        position = 0
        while position < len(view):
            if not self._left_in_batch_bytes:
                if not self._started:
                    position = self._take_small_batches(view, position)
                position += self._take_begin(view, position)
                if len(self._started) < LOG_OVERHEAD_BYTES:
                    return
                yield from self._begin_entry()
            size_bytes = min(self._left_in_batch_bytes, len(view) - position)
            yield from self._hand_on(view[position : position + size_bytes])
            position += size_bytes
            self._left_in_batch_bytes -= size_bytes

    def finish(self) -> Iterator[memoryview]:
        """Yield the object's remaining bytes. Call it after the log's last byte."""
        self._require(not self._started and not self._left_in_batch_bytes)
        yield from self._end_block()
        self._require(next(self._following, None) is None)
        yield from self._flush()

    def _take_small_batches(self, view: memoryview, position: int) -> int:
        """Copy whole batches while they fit; return the position of the first batch not copied.

        Stops at the end of the block, at a full buffer, at a batch longer than `_COPIED_BYTES`,
        and at a batch that continues after `view`.
        """
        out, filled_bytes, entry_id = self._out, self._filled_bytes, self._next_entry_id
        left_in_block_bytes, end_entry_id = self._left_in_block_bytes, self._end_entry_id
        last_begin = len(view) - LOG_OVERHEAD_BYTES
        while position <= last_begin and entry_id < end_entry_id:
            size_bytes = _BATCH_LENGTH.unpack_from(view, position)[0] + LOG_OVERHEAD_BYTES
            end_position = position + size_bytes
            data_begin = filled_bytes + ENTRY_HEADER_BYTES
            data_end = data_begin + size_bytes
            if end_position > len(view) or data_end > _BUFFER_BYTES:
                break
            if not LOG_OVERHEAD_BYTES < size_bytes <= _COPIED_BYTES:
                break
            ENTRY_HEADER.pack_into(out, filled_bytes, size_bytes, entry_id)
            out[data_begin:data_end] = view[position:end_position]
            left_in_block_bytes -= ENTRY_HEADER_BYTES + size_bytes
            position, filled_bytes = end_position, data_end
            entry_id += 1
        self._filled_bytes, self._next_entry_id = filled_bytes, entry_id
        self._left_in_block_bytes = left_in_block_bytes
        self._require(left_in_block_bytes >= 0)
        return position

    def _take_begin(self, view: memoryview, position: int) -> int:
        """Take a batch's bytes through its length field; return how many of them were in `view`."""
        wanted_bytes = LOG_OVERHEAD_BYTES - len(self._started)
        piece = view[position : position + wanted_bytes]
        self._started += piece
        return len(piece)

    def _begin_entry(self) -> Iterator[memoryview]:
        (length_bytes,) = _BATCH_LENGTH.unpack(self._started)
        size_bytes = length_bytes + LOG_OVERHEAD_BYTES
        self._require(length_bytes > 0)
        if self._next_entry_id == self._end_entry_id:
            yield from self._end_block()
            yield from self._begin_block()
        self._left_in_block_bytes -= ENTRY_HEADER_BYTES + size_bytes
        self._require(self._left_in_block_bytes >= 0)
        yield from self._hand_on(ENTRY_HEADER.pack(size_bytes, self._next_entry_id))
        yield from self._hand_on(self._started)
        self._started = bytearray()
        self._left_in_batch_bytes = length_bytes
        self._next_entry_id += 1

    def _begin_block(self) -> Iterator[memoryview]:
        block = next(self._following, None)
        if block is None:
            raise _changed(self._next_entry_id)
        self._block = block
        self._end_entry_id = block.first_entry_id + block.entry_count
        self._left_in_block_bytes = block.block_bytes - block.padding_bytes - HEADER_BYTES
        yield from self._hand_on(block.header())

    def _end_block(self) -> Iterator[memoryview]:
        self._require(self._next_entry_id == self._end_entry_id and not self._left_in_block_bytes)
        left_bytes = 0 if self._block is None else self._block.padding_bytes
        # Each piece is a multiple of the pattern, so that the next piece continues it.
        while left_bytes:
            size_bytes = min(left_bytes, _COPIED_BYTES)
            yield from self._hand_on(padding(size_bytes))
            left_bytes -= size_bytes

    def _hand_on(self, piece: memoryview | bytes | bytearray) -> Iterator[memoryview]:
        """Copy a small piece into the buffer; flush the buffer before a large one."""
        end = self._filled_bytes + len(piece)
        if end > _BUFFER_BYTES or len(piece) > _COPIED_BYTES:
            yield from self._flush()
            end = len(piece)
        if len(piece) > _COPIED_BYTES:
            yield memoryview(piece)
        else:
            self._out[self._filled_bytes : end] = piece
            self._filled_bytes = end

    def _flush(self) -> Iterator[memoryview]:
        filled_bytes, self._filled_bytes = self._filled_bytes, 0
        if filled_bytes:
            yield self._out[:filled_bytes]

    def _require(self, as_planned: bool) -> None:  # noqa: FBT001 - reads as an assertion
        if not as_planned:
            raise _changed(self._next_entry_id)


def _changed(entry_id: int) -> RetriableError:
    return RetriableError("the log's batches changed during the copy", entry_id=entry_id)
