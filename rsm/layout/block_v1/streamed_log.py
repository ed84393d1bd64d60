"""Encodes a log as a data object in block format v1 while it reads the log's batches.

A block's header contains the block's length, so each block is buffered until the next batch does
not fit, or the log ends. The bytes are the same as BlockedLog's. Pure.

Memory: one block, or a batch that is larger, and the carry of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rsm.layout.block_v1.divided_log import DividedLog
from rsm.layout.blocks.batch_runs import batch_runs
from rsm.layout.blocks.block_plan import BlockBuilder
from rsm.layout.blocks.log_points import LogPointsBuilder
from rsm.segment.errors import UnsupportedError
from rsm.segment.local_segment import ContentSource, PartBounds, interrupt_of


class StreamedLog:
    """Represents `log` as a PartedSource for one pass; each block is a part. Not thread-safe.

    The pass raises the errors of the log, CorruptError for content that is not batches, and
    UnsupportedError for an empty log or an oversized batch.
    """

    length_bytes = None
    parts = PartBounds.EACH_CHUNK

    def __init__(self, log: ContentSource, *, block_bytes: int) -> None:
        self._log = log
        self.interrupt = interrupt_of(log)
        self._builder = BlockBuilder(block_bytes=block_bytes)
        self._points = LogPointsBuilder()

    def chunks(self) -> Iterator[memoryview]:
        due_position = -1
        for run in batch_runs(self._log):
            for number, (begin, end) in enumerate(pairwise(run.bounds)):
                full = self._builder.add(run.buffer[begin:end])
                at = run.log_position + begin
                if full is not None or at >= due_position:
                    entry_id = self._builder.next_entry_id - 1
                    due_position = self._points.add(entry_id, at, run.base_offset_of(number))
                if full is not None:
                    yield memoryview(full)
        if due_position < 0:
            raise UnsupportedError("cannot store a segment without batches in layout block_v1")
        yield memoryview(self._builder.finish())

    def divided(self) -> DividedLog:
        """Return the division of the log. Call it only after the pass."""
        return DividedLog(
            blocks=self._builder.built,
            entry_count=self._builder.next_entry_id,
            log_points=self._points.encode(),
        )
