"""SegmentDivision: in chunks of what size each segment is read, by what the store was seen to do.

A segment is divided when its first reader reads on there, and stays so for all: they share chunks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from rlm.remote_read.range_size import RangeSize
from rsm.segment.ids import RemoteLogSegmentId

_LIMIT_COUNT = (
    10_000  # a segment that was forgotten is divided again, and what is cached of it ages
)


class SegmentDivision:
    """Thread-safe. `share_bytes`: how much a reader may hold now. Memory: 2 MB."""

    def __init__(
        self, *, least_bytes: int, most_bytes: int, share_bytes: Callable[[], int]
    ) -> None:
        self._share_bytes = share_bytes
        self._size = RangeSize(least_bytes=least_bytes, most_bytes=most_bytes)
        self._known: OrderedDict[int, int] = OrderedDict()  # by the segments' own ids
        self._lock = threading.Lock()

    def known_chunk_bytes(self, segment_id: RemoteLogSegmentId) -> int | None:
        """The size of the segment's chunks; None if it is not divided yet."""
        return self._known.get(segment_id.id.int)

    def chunk_bytes(self, segment_id: RemoteLogSegmentId) -> int:
        """The size of the segment's chunks, from now on if it was not divided yet."""
        known = self._known.get(segment_id.id.int)
        if known is not None:
            return known
        share_bytes = self._share_bytes()
        with self._lock:
            chunk_bytes = self._size.size_bytes(share_bytes=share_bytes)
            chunk_bytes = self._known.setdefault(segment_id.id.int, chunk_bytes)
            if len(self._known) > _LIMIT_COUNT:
                self._known.popitem(last=False)
        return chunk_bytes

    def took(self, size_bytes: int, duration_ms: float) -> None:
        """A read of so many bytes took so long."""
        with self._lock:
            self._size = self._size.after(size_bytes, duration_ms)
