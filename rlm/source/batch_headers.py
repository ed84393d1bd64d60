"""The headers of a log file's batches, read without the records between them.

Owns the walk from header to header by position. Checks that the batches fill the file exactly;
their CRCs are for the scanner that reads the whole content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from rsm.segment.batch import HEADER_BYTES, BatchHeader, parse_header
from rsm.segment.errors import CorruptError

# Small batches share a read; of a large one little more than its header is read.
_WINDOW_BYTES = 4096


def read_batch_headers(descriptor: int, size_bytes: int) -> Iterator[BatchHeader]:
    """Yield the header of each batch of the file's first `size_bytes`, in order.

    Raises CorruptError, with the position, at what is no batch and where the last one is cut
    short: a broker cuts preallocated zeros and torn batches off before it appends to the next file.
    Holds one small buffer; the descriptor's own position is neither used nor moved.
    """
    buffer = bytearray(_WINDOW_BYTES)
    window = memoryview(buffer)
    window_position, window_end = 0, 0
    position = 0
    while position < size_bytes:
        if window_end < min(position + HEADER_BYTES, size_bytes):
            read_bytes = os.preadv(descriptor, [buffer], position)
            window_position, window_end = position, min(position + read_bytes, size_bytes)
        in_window = window[: window_end - window_position]
        header = parse_header(in_window, position - window_position, base_position=window_position)
        yield header
        position += header.length_bytes
    if position > size_bytes:
        raise CorruptError("last batch cut short", expected_bytes=position, found_bytes=size_bytes)
