"""ReadFailures: logs why the gateway cannot serve stored records, at a limited rate.

While the store or the metadata topic is down, each client fetches again at once, so each partition
fails many times a second. This module only logs failures; metrics count them.
"""

from __future__ import annotations

import logging
from threading import Lock

from rlm.gateway.model.actions import PartitionFetch
from rsm.segment.clock import Clock
from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_UNSERVED = "cannot serve stored records"
_INTERVAL_MS = 60_000
_LOGGED_MAX_COUNT = 1_000


class ReadFailures:
    """Logs the failed reads of all clients: each cause at most once a minute for each partition.

    Thread-safe. A cause is the constant text of an error of `rlm`, or the class name of any other
    error. Memory: at most 1,000 pairs of partition and cause. While all of these are younger than a
    minute, new pairs are not logged. Each line contains the number of failures that were not logged
    since the previous line.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The times are monotonic, and the oldest comes first.
        self._logged_at_ms: dict[tuple[TopicIdPartition, str], int] = {}
        self._unlogged_count = 0
        self._lock = Lock()

    def record(self, read: PartitionFetch, error: BaseException) -> None:
        """Log a failed read; log missing or corrupt objects at debug level, without a limit."""
        if isinstance(error, NotFoundError | CorruptError):
            # ReadAnomalies logs a warning for the first failure of the segment.
            _log.debug(LogLine("cannot read a stored segment", error=error))
            return
        cause = error.message if isinstance(error, TieredStorageError) else type(error).__name__
        unlogged_count = self._take_unlogged((read.topic_id_partition, cause))
        if unlogged_count is None:
            return
        fields = {
            "topic_partition": read.topic_id_partition,
            "offset": read.offset,
            "unlogged_count": unlogged_count,
        }
        if isinstance(error, TieredStorageError):
            _log.warning(LogLine(_UNSERVED, **fields, error=error))
        else:
            _log.error(LogLine(_UNSERVED, **fields), exc_info=error)

    def _take_unlogged(self, key: tuple[TopicIdPartition, str]) -> int | None:
        """Return the number of unlogged failures; None if this failure is not logged either."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            while self._logged_at_ms:
                oldest, logged_at_ms = next(iter(self._logged_at_ms.items()))
                if now_ms < logged_at_ms + _INTERVAL_MS:
                    break
                del self._logged_at_ms[oldest]
            if key in self._logged_at_ms or len(self._logged_at_ms) >= _LOGGED_MAX_COUNT:
                self._unlogged_count += 1
                return None
            self._logged_at_ms[key] = now_ms
            unlogged_count, self._unlogged_count = self._unlogged_count, 0
        return unlogged_count
