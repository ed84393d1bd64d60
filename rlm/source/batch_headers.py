"""Reads the headers of a log file's batches, without the records between them.

Reads from header to header by position, and checks that the batches fill the file exactly. The
scanner, which reads the whole content, checks the CRCs.
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

# One read covers several small batches, but little more than the header of a large one.
_WINDOW_BYTES = 4096
_LARGE_WINDOW_BYTES = 64 << 10
_EXTENT = struct.Struct(">qi")


class BatchSpan(NamedTuple):
    """Represents the fields of a batch that an index needs.

    It is a tuple, because a segment may have millions of batches.
    """

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    length_bytes: int


def read_batch_spans(
    descriptor: int, size_bytes: int, *, start_position: int = 0
) -> Iterator[BatchSpan]:
    """Yield a span for each batch in the file's first `size_bytes`, in order.

    A batch must begin at `start_position`. Raises CorruptError, with the position, for invalid
    bytes. A truncated last batch is also corrupt: a broker removes preallocated zeros and torn
    batches before it appends to the next file. Uses one small buffer, and does not use or change
    the descriptor's file position.
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
        raise CorruptError(
            "the log file is corrupt: its last batch is truncated",
            expected_bytes=position,
            found_bytes=size_bytes,
        )


def read_batch_extents(
    descriptor: int, size_bytes: int, *, start_position: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield (base offset, length in bytes) for each batch; otherwise like `read_batch_spans`.

    Decodes nothing else of a batch, so it costs a fraction of `read_batch_spans`.
    """
    window = memoryview(bytearray(_LARGE_WINDOW_BYTES))
    window_bytes = _WINDOW_BYTES
    position = start_position
    while position < size_bytes:
        read_bytes = os.preadv(descriptor, [window[:window_bytes]], position)
        within, end = 0, min(read_bytes, size_bytes - position) - PREFIX_BYTES
        if end < 0:
            break
        # A small window avoids reading the records of large batches.
        window_bytes = _WINDOW_BYTES
        while within <= end:
            base_offset, length = _EXTENT.unpack_from(window, within)
            size = length + LOG_OVERHEAD_BYTES
            if not PREFIX_BYTES <= size <= MAX_BATCH_BYTES:
                # This call raises CorruptError, because the bytes are not a batch.
                parse_header(window[:read_bytes], within, base_position=position)
            yield base_offset, size
            within += size
            if size < _WINDOW_BYTES:
                window_bytes = _LARGE_WINDOW_BYTES
        position += within
    if position != size_bytes:
        raise CorruptError(
            "the log file is corrupt: its last batch is truncated",
            expected_bytes=position if position > size_bytes else position + PREFIX_BYTES,
            found_bytes=size_bytes,
        )


def _span_at(window: memoryview, position: int, window_position: int) -> BatchSpan:
    if len(window) - position >= HEADER_BYTES and window[position + 16] == 2:
        base_offset, length, _, _, _, _, delta, _, timestamp_ms, *_ = V2_HEADER.unpack_from(
            window, position
        )
        size = length + LOG_OVERHEAD_BYTES
        if base_offset >= 0 and delta >= 0 and HEADER_BYTES <= size <= MAX_BATCH_BYTES:
            return BatchSpan(base_offset, base_offset + delta, timestamp_ms, size)
    # The full parser also reads messages of magic 0 and 1, and reports what is invalid.
    header = parse_header(window, position, base_position=window_position)
    return BatchSpan(
        header.base_offset, header.last_offset, header.max_timestamp_ms, header.length_bytes
    )
