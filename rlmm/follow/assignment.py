"""Assignment: which metadata partitions a process follows, by the user partitions it hosts.

The cluster partition is followed always. Until a process has said for the first time what it hosts,
it follows what its cache holds: a restart neither drops nor misses anything. All are followed for
as long as topics are looked for whose partitions nobody hosts any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from threading import Lock

from rlmm.partitioner import CLUSTER_PARTITION, metadata_partition
from rsm.segment.ids import TopicIdPartition


class Assignment:
    """Thread-safe. Memory: the partitions that are hosted."""

    def __init__(self, *, follows_all: bool) -> None:
        """`follows_all`: whatever is hosted; for gateways and commands."""
        self._follows_all = follows_all
        self._lock = Lock()
        self._hosted: frozenset[TopicIdPartition] | None = None
        self._has_unhosted_topics = False
        self._wanted: dict[int, frozenset[int]] = {}

    def add(self, partitions: Iterable[TopicIdPartition]) -> None:
        """These user partitions are hosted too. The first call names all that are."""
        self._change(frozenset(partitions), frozenset())

    def remove(self, partitions: Iterable[TopicIdPartition]) -> None:
        """These user partitions are hosted no longer; nothing happens to others."""
        self._change(frozenset(), frozenset(partitions))

    def set_unhosted_topics(self, *, any_left: bool) -> None:
        """Whether there are topics to look for wherever their partitions' metadata may stand."""
        with self._lock:
            self._has_unhosted_topics = any_left

    def wanted(self, partition_count: int, cached: Collection[int]) -> frozenset[int]:
        """The metadata partitions to follow; `held` are those that the cache holds."""
        with self._lock:
            if self._follows_all or self._has_unhosted_topics:
                return frozenset(range(partition_count))
            if self._hosted is None:
                return frozenset((CLUSTER_PARTITION, *cached))
            wanted = self._wanted.get(partition_count)
            if wanted is None:
                found = (metadata_partition(each, partition_count) for each in self._hosted)
                wanted = frozenset((CLUSTER_PARTITION, *found))
                self._wanted = {partition_count: wanted}
            return wanted

    def _change(
        self, added: frozenset[TopicIdPartition], removed: frozenset[TopicIdPartition]
    ) -> None:
        with self._lock:
            hosted = ((self._hosted or frozenset()) | added) - removed
            if hosted != self._hosted:
                self._hosted = hosted
                self._wanted = {}
