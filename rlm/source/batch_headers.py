"""The headers of a log file's batches, read without the records between them.

Owns the walk from header to header by position. Checks that the batches fill the file exactly;
their CRCs are for the scanner that reads the whole content.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from rsm.segment.batches.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAX_BATCH_BYTES,
    PREFIX_BYTES,
    V2_HEADER,
    parse_header,
)
from rsm.segment.errors import CorruptError

# Small batches share a read; of a large one little more than its header is read.
_WINDOW_BYTES = 4096
_LARGE_WINDOW_BYTES = 64 << 10
_EXTENT = struct.Struct(">qi")


class BatchSpan(NamedTuple):
    """What an index needs of a batch's header. A tuple, because a segment may have millions."""

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    length_bytes: int


def read_batch_spans(
    descriptor: int, size_bytes: int, *, start_position: int = 0
) -> Iterator[BatchSpan]:
    """Yield a span for each batch of the file's first `size_bytes`, in order.

    From `start_position` on, where a batch has to begin.

    Raises CorruptError, with the position, at what is no batch and where the last one is cut
    short: a broker cuts preallocated zeros and torn batches off before it appends to the next file.
    Holds one small buffer; the descriptor's own position is neither used nor moved.
    """
    buffer = bytearray(_WINDOW_BYTES)
    window = memoryview(buffer)
    window_position, window_end = 0, 0
    position = start_position
    while position < size_bytes:
        if window_end < position + HEADER_BYTES and window_end < size_bytes:
            read_bytes = os.preadv(descriptor, [buffer], position)
            window_position, window_end = position, min(position + read_bytes, size_bytes)
            window = memoryview(buffer)[: window_end - window_position]
        span = _span_at(window, position - window_position, window_position)
        yield span
        position += span.length_bytes
    if position > size_bytes:
        raise CorruptError("last batch cut short", expected_bytes=position, found_bytes=size_bytes)


def read_batch_extents(
    descriptor: int, size_bytes: int, *, start_position: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield (base offset, length in bytes) for each batch, in order; otherwise as above.

    Says nothing else of a batch, and costs a fraction of its span.
    """
    window = memoryview(bytearray(_LARGE_WINDOW_BYTES))
    window_bytes = _WINDOW_BYTES
    position = start_position
    while position < size_bytes:
        read_bytes = os.preadv(descriptor, [window[:window_bytes]], position)
        within, end = 0, min(read_bytes, size_bytes - position) - PREFIX_BYTES
        if end < 0:
            break
        # Of batches that are larger than a window only the headers are read.
        window_bytes = _WINDOW_BYTES
        while within <= end:
            base_offset, length = _EXTENT.unpack_from(window, within)
            size = length + LOG_OVERHEAD_BYTES
            if not PREFIX_BYTES <= size <= MAX_BATCH_BYTES:
                # Raises: there is no such batch.
                parse_header(window[:read_bytes], within, base_position=position)
            yield base_offset, size
            within += size
            if size < _WINDOW_BYTES:
                window_bytes = _LARGE_WINDOW_BYTES
        position += within
    if position != size_bytes:
        raise CorruptError("last batch cut short", expected_bytes=position, found_bytes=size_bytes)


def _span_at(window: memoryview, position: int, window_position: int) -> BatchSpan:
    if len(window) - position >= HEADER_BYTES and window[position + 16] == 2:
        base_offset, length, _, _, _, _, delta, _, timestamp_ms, *_ = V2_HEADER.unpack_from(
            window, position
        )
        size = length + LOG_OVERHEAD_BYTES
        if base_offset >= 0 and delta >= 0 and HEADER_BYTES <= size <= MAX_BATCH_BYTES:
            return BatchSpan(base_offset, base_offset + delta, timestamp_ms, size)
    # A message of magic 0 or 1, or none at all, which the full reader says better.
    header = parse_header(window, position, base_position=window_position)
    return BatchSpan(
        header.base_offset, header.last_offset, header.max_timestamp_ms, header.length_bytes
    )
