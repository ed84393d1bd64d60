"""Records recently changed partitions, for callers that cache derived data.

The writer of the cache reports a change here once readers can see it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from threading import Lock
from uuid import UUID

from rlmm.spi import ChangedPartitions, PartitionKey

_REMEMBERED_COUNT = 10_000
_ID_BYTES = 16


class PartitionChanges:
    """Represents recent changes. Thread-safe. Memory: the last `remembered_count` changes."""

    def __init__(self, remembered_count: int = _REMEMBERED_COUNT) -> None:
        self._lock = Lock()
        self._count = 0
        self._last: deque[bytes] = deque(maxlen=remembered_count)

    def changed(self, subjects: Iterable[bytes]) -> None:
        """Record that the partitions with these subjects (rlmm/record_keys.py) changed."""
        with self._lock:
            for subject in subjects:
                self._last.append(subject)
                self._count += 1

    def all_changed(self) -> None:
        """Record that any partition may have changed."""
        with self._lock:
            self._last.clear()
            self._count += 1

    def since(self, count: int) -> ChangedPartitions:
        """Return the changes since the result that had this `count`.

        Its `partition_keys` are None if any partition may have changed, because the older changes
        are no longer in memory.
        """
        with self._lock:
            new_count = self._count - count
            if new_count > len(self._last):
                return ChangedPartitions(count=self._count, partition_keys=None)
            found = ChangedPartitions(count=self._count, partition_keys=frozenset())
            subjects = list(islice(reversed(self._last), new_count))
        return (
            replace(found, partition_keys=frozenset(map(_partition_key, subjects)))
            if subjects
            else found
        )


def _partition_key(subject: bytes) -> PartitionKey:
    topic_id, partition = subject[:_ID_BYTES], subject[_ID_BYTES:]
    return PartitionKey(UUID(bytes=topic_id), int.from_bytes(partition, "big"))
