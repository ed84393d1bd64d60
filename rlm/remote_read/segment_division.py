"""SegmentDivision: the chunk size of each segment, by measurements of the store.

The first sequential reader of a segment fixes the size for all, because readers share chunks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from rlm.remote_read.range_size import RangeSize
from rsm.segment.ids import RemoteLogSegmentId

# A segment beyond this is divided again, and its cached chunks age out of the cache.
_LIMIT_COUNT = 10_000


class SegmentDivision:
    """The chunk sizes of segments. `share_bytes`: how much memory a reader may use now.

    Thread-safe. Memory: 2 MB.
    """

    def __init__(
        self, *, least_bytes: int, most_bytes: int, share_bytes: Callable[[], int]
    ) -> None:
        self._share_bytes = share_bytes
        self._size = RangeSize(least_bytes=least_bytes, most_bytes=most_bytes)
        self._known: OrderedDict[int, int] = OrderedDict()  # by the segments' own ids
        self._lock = threading.Lock()

    def known_chunk_bytes(self, segment_id: RemoteLogSegmentId) -> int | None:
        """Return the segment's chunk size; None if the segment is not divided yet."""
        return self._known.get(segment_id.id.int)

    def chunk_bytes(self, segment_id: RemoteLogSegmentId) -> int:
        """Return the segment's chunk size, and fix it if the segment is not divided yet."""
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
        with self._lock:
            self._size = self._size.after(size_bytes, duration_ms)
