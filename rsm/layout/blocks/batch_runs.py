"""Divides a log that arrives in pieces into runs of record batches. Pure.

A run contains all whole batches of a piece. A batch that spans several pieces is a separate run;
only such batches are assembled in a new buffer.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from rsm.segment.batches.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAX_BATCH_BYTES,
    PREFIX_BYTES,
    batch_length_bytes,
)
from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import ContentSource

_BASE_OFFSET = struct.Struct(">q")
_LENGTH_AND_MAGIC = struct.Struct(">8xi4xb")


class AdjoiningBatches(NamedTuple):
    """Represents adjoining record batches; the first one begins at `log_position`.

    `bounds` are the batches' positions in `buffer`, and the end of the last batch. The first is 0.
    """

    log_position: int
    buffer: memoryview
    bounds: list[int]

    @property
    def base_offset(self) -> int:
        """Return the base offset of the first batch."""
        return self.base_offset_of(0)

    @property
    def end_log_position(self) -> int:
        return self.log_position + self.bounds[-1]

    def base_offset_of(self, number: int) -> int:
        """Return the base offset of batch `number` of the run; the first batch is 0."""
        (base_offset,) = _BASE_OFFSET.unpack_from(self.buffer, self.bounds[number])
        return int(base_offset)

    def divided_at(self, log_position: int) -> tuple[AdjoiningBatches, AdjoiningBatches] | None:
        """Divide the run at a log position within it; return both parts.

        Returns None if no batch begins at the position.
        """
        end = log_position - self.log_position
        number = bisect_left(self.bounds, end)
        if self.bounds[number] != end:
            return None
        before = AdjoiningBatches(self.log_position, self.buffer[:end], self.bounds[: number + 1])
        bounds = [bound - end for bound in self.bounds[number:]]
        return before, AdjoiningBatches(log_position, self.buffer[end:], bounds)


def batch_runs(log: ContentSource) -> Iterator[AdjoiningBatches]:
    """Yield the batches of a log in one pass; each run is valid until the next one.

    Checks only lengths and magics: the reader of the log has checked the rest.

    Raises the errors of the log, and CorruptError if the content is not batches, or if its length
    differs from `log.length_bytes`.
    """
    rest = bytearray()
    position = 0
    for piece in log.chunks():
        view = piece
        if rest:
            joined = _completed(rest, view, position)
            if joined is None:
                rest += view
                continue
            view = view[len(joined) - len(rest) :]
            rest = bytearray()
            yield AdjoiningBatches(position, memoryview(joined), [0, len(joined)])
            position += len(joined)
        bounds = _bounds(view, position)
        end = bounds[-1]
        if end:
            yield AdjoiningBatches(position, view[:end], bounds)
        rest += view[end:]
        position += end
    if rest:
        raise CorruptError("the log is corrupt: its last batch is truncated", position=position)
    if log.length_bytes not in {None, position}:
        raise CorruptError(
            "the log's length differs from the announced length",
            position=position,
            expected=log.length_bytes,
            found=position,
        )


def _completed(rest: bytearray, view: memoryview, position: int) -> bytes | None:
    """Return the batch that begins with `rest`; None if it does not end in `view`."""
    prefix = bytes(rest[:PREFIX_BYTES]) + bytes(view[:PREFIX_BYTES])
    size = batch_length_bytes(memoryview(prefix), 0, base_position=position)
    if size is None or len(rest) + len(view) < size:
        return None
    return bytes(rest) + bytes(view[: size - len(rest)])


def _bounds(view: memoryview, log_position: int) -> list[int]:
    """Return the positions of the whole batches, and the end of the last batch."""
    bounds = [0]
    at, last = 0, len(view) - PREFIX_BYTES
    unpack = _LENGTH_AND_MAGIC.unpack_from
    while at <= last:
        rest_bytes, magic = unpack(view, at)
        size = rest_bytes + LOG_OVERHEAD_BYTES
        if magic != 2 or not HEADER_BYTES <= size <= MAX_BATCH_BYTES:
            # `batch_length_bytes` accepts older batches and raises for invalid ones.
            checked = batch_length_bytes(view, at, base_position=log_position)
            assert checked is not None
            size = checked
        at += size
        if at > len(view):
            break
        bounds.append(at)
    return bounds
