"""Encodes a log as a data object in block format v1 while the log comes: no batch is known before.

A block begins with its length. So each block is buffered until the next batch does not fit into it,
or the log has ended. Gives the same bytes as BlockedLog. Pure.

Memory: one block, and what is left of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from rsm.layout.block_v1.block_plan import BlockBuilder
from rsm.layout.block_v1.divided_log import DividedLog
from rsm.layout.block_v1.log_points import LogPointsBuilder
from rsm.segment.batches.batch import scan_batches
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import ContentSource, PartBounds


class StreamedLog:
    """A PartedSource for one pass over `log`; each block is a part. Not thread-safe.

    The pass raises the errors of the log, CorruptError for content that is not batches, and
    UnsupportedError for an empty log or a batch that is too large.
    """

    length_bytes = None
    parts = PartBounds.EACH_CHUNK

    def __init__(self, log: ContentSource, *, block_bytes: int) -> None:
        self._log = log
        self._builder = BlockBuilder(block_bytes=block_bytes)
        self._points = LogPointsBuilder()

    def chunks(self) -> Iterator[memoryview]:
        log_position = due_position = 0
        for base_offset, batch in _batches(self._log):
            full = self._builder.add(batch)
            if full is not None or log_position >= due_position:
                entry_id = self._builder.next_entry_id - 1
                due_position = self._points.add(entry_id, log_position, base_offset)
            log_position += len(batch)
            if full is not None:
                yield memoryview(full)
        if not log_position:
            raise UnsupportedError("block_v1 cannot store a segment without batches")
        yield memoryview(self._builder.finish())

    def divided(self) -> DividedLog:
        """Return the division of the log; only after the pass."""
        return DividedLog(
            blocks=self._builder.built,
            entry_count=self._builder.next_entry_id,
            log_points=self._points.encode(),
        )


def _batches(log: ContentSource) -> Iterator[tuple[int, memoryview]]:
    """Yield each batch of a log with its base offset; each is valid until the next one."""
    rest = b""
    base_position = 0
    for view in log.chunks():
        buffer = memoryview(rest + view)
        consumed = 0
        for position, header in scan_batches(buffer, base_position=base_position):
            begin = position - base_position
            consumed = begin + header.length_bytes
            yield header.base_offset, buffer[begin:consumed]
        rest = bytes(buffer[consumed:])
        base_position += consumed
    if rest:
        raise CorruptError("the last batch is cut short", position=base_position)
