"""Decides which metadata partitions a process follows, given the user partitions it hosts.

The assignment always includes the cluster partition. Until the process first names its hosted
partitions, the assignment includes the cached metadata partitions, so that a restart neither drops
nor misses anything. While the process searches for deleted topics, whose partitions no broker
hosts, the assignment includes all metadata partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from threading import Lock

from rlmm.partitioner import metadata_partition
from rlmm.positions import CLUSTER_PARTITION
from rsm.segment.ids import TopicIdPartition


class Assignment:
    """Represents the assigned metadata partitions. Thread-safe. Memory: the hosted partitions."""

    def __init__(self, *, follows_all: bool) -> None:
        """Begin without hosted partitions; gateways and commands set `follows_all`."""
        self._follows_all = follows_all
        self._lock = Lock()
        self._hosted: frozenset[TopicIdPartition] | None = None
        self._has_unhosted_topics = False
        self._wanted: dict[int, frozenset[int]] = {}

    def add(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Add hosted user partitions; the first call must name all of them."""
        self._change(frozenset(partitions), frozenset())

    def remove(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Remove user partitions that are no longer hosted; ignore others."""
        self._change(frozenset(), frozenset(partitions))

    def set_unhosted_topics(self, *, any_left: bool) -> None:
        """Set whether the process searches all metadata partitions for deleted topics."""
        with self._lock:
            self._has_unhosted_topics = any_left

    def wanted(self, partition_count: int, cached: Collection[int]) -> frozenset[int]:
        """Return the metadata partitions to follow; `cached` are those in the cache."""
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
