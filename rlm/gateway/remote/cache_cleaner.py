"""CacheCleaner: removes from the caches the segments that no client can read any more.

KIP-405 lets followers remove indexes below the earliest offset. A gateway does the same with
decoded indexes, chunks in memory, and files on disk. It follows log starts, expired segments and
deleted topics in the metadata. A running fetch of such data keeps its bytes.

If the metadata does not know a segment, the segment was deleted, or its record is not read yet. The
cleaner therefore removes nothing until the metadata is read to its end.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Protocol

from rlm.remote_read.segment_parts import SegmentPart, object_of_part
from rlmm.spi import PartitionKey, RemoteLogMetadataManager
from rsm.cache.chunk_cache import ChunkCache
from rsm.layout.keys import segment_of_key
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState
from rsm.spi import RemoteStorageManager

_log = logging.getLogger(__name__)

# A fetch that located its segment before a metadata change may fill a cache after that change. Each
# pass therefore checks the partitions of the previous pass again, and some passes check all.
_WHOLE_INTERVAL_MS = 600_000


class GoneReason(Enum):
    """Represents why no client can read a segment any more. The values are labels of a metric."""

    PARTITION_DELETED = "partition_deleted"
    SEGMENT_DELETED = "segment_deleted"
    BELOW_LOG_START = "below_log_start"
    UNKNOWN = "unknown"


class ObjectCache(Protocol):
    """Represents a cache of data that was read from stored objects. Thread-safe."""

    def kept_objects(self) -> Collection[str]:
        """Return the keys of the objects that have cached data."""

    def forget(self, keys: Collection[str]) -> None:
        """Remove the data of these objects from the cache; running reads may still use it."""


class ChunksOfObjects(ObjectCache):
    """Represents the chunk cache of fetches, keyed by the objects that its chunks are from."""

    def __init__(self, cache: ChunkCache[SegmentPart]) -> None:
        self._cache = cache

    def kept_objects(self) -> Collection[str]:
        return {object_of_part(name) for name in self._cache.names()}

    def forget(self, keys: Collection[str]) -> None:
        self._cache.forget({n for n in self._cache.names() if object_of_part(n) in keys})


class CacheCleaner:
    """Removes unreadable segments from a gateway's caches. Used by one thread.

    Memory: about 500 bytes for each cached object.
    """

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        *,
        storage: RemoteStorageManager,
        chunks: ObjectCache,
        clock: Clock,
        dropped: Callable[[GoneReason, int], None],
    ) -> None:
        """`storage` owns the decoded and the disk caches. `dropped` counts objects by reason."""
        self._metadata = metadata
        self._storage = storage
        self._chunks = chunks
        self._clock = clock
        self._dropped = dropped
        self._segments: dict[str, RemoteLogSegmentId | None] = {}
        self._seen_count = 0
        self._changed_before: frozenset[PartitionKey] = frozenset()
        self._whole_due_ms = clock.monotonic_ms()

    def step(self) -> None:
        """Clean the partitions that changed.

        Cleans all partitions on the first call, every ten minutes, and if the metadata cannot list
        the changed ones. Until the metadata is read to its end, raises RetriableError and removes
        nothing.
        """
        readiness = self._metadata.readiness()
        if not readiness.is_ready:
            raise RetriableError(readiness.reason or "the metadata is not ready")
        # This comes before all lookups, so that the next pass gets the changes made meanwhile.
        changed = self._metadata.changed_partitions(self._seen_count)
        now_ms = self._clock.monotonic_ms()
        is_whole = changed.partition_keys is None or now_ms >= self._whole_due_ms
        partition_keys = changed.partition_keys or frozenset()
        scope = None if is_whole else partition_keys | self._changed_before
        undecided = self._clean(scope) if scope is None or scope else frozenset()
        self._seen_count = changed.count
        self._changed_before = partition_keys | undecided
        if is_whole:
            self._whole_due_ms = now_ms + _WHOLE_INTERVAL_MS

    def _clean(self, scope: frozenset[PartitionKey] | None) -> frozenset[PartitionKey]:
        """Clean the partitions in `scope`, or all if None; return those that cannot be checked."""
        objects = self._objects_by_segment()
        reasons: dict[RemoteLogSegmentId | None, GoneReason] = {}
        undecided: set[PartitionKey] = set()
        for segment_id in objects:
            if segment_id is None:
                reasons[segment_id] = GoneReason.UNKNOWN
                continue
            partition_key = _partition_key_of(segment_id)
            if scope is not None and partition_key not in scope:
                continue
            try:
                reason = why_gone(self._metadata, segment_id)
            except RetriableError:
                undecided.add(partition_key)
                continue
            if reason is not None:
                reasons[segment_id] = reason
        self._drop({segment_id: objects[segment_id] for segment_id in reasons}, reasons)
        return frozenset(undecided)

    def _objects_by_segment(self) -> Mapping[RemoteLogSegmentId | None, set[str]]:
        """Return the keys of all cached objects by segment; by None if they name no segment."""
        keys = {*self._storage.kept_objects(), *self._chunks.kept_objects()}
        known = self._segments
        self._segments = {k: known[k] if k in known else segment_of_key(k) for k in keys}
        found: dict[RemoteLogSegmentId | None, set[str]] = {}
        for key, segment_id in self._segments.items():
            found.setdefault(segment_id, set()).add(key)
        return found

    def _drop(
        self,
        objects: Mapping[RemoteLogSegmentId | None, set[str]],
        reasons: Mapping[RemoteLogSegmentId | None, GoneReason],
    ) -> None:
        keys = {key for each in objects.values() for key in each}
        if not keys:
            return
        # Chunks are removed first, because chunks are read through the storage manager's caches.
        self._chunks.forget(keys)
        self._storage.forget(keys)
        counts = Counter(reasons[segment_id] for segment_id, each in objects.items() for _ in each)
        for reason, count in counts.items():
            self._dropped(reason, count)
        _log.info(
            LogLine(
                "dropped cached objects",
                partitions=len(set(_partitions(objects))),
                **{reason.value: count for reason, count in counts.items()},
            )
        )


def why_gone(
    metadata: RemoteLogMetadataManager, segment_id: RemoteLogSegmentId
) -> GoneReason | None:
    """Return why no client can read a segment any more; None if the segment may stay cached.

    Segments outside of the lineage after an unclean election may stay, because a later election may
    restore them. Raises RetriableError if the metadata cannot answer now.
    """
    state = metadata.partition_state(segment_id.topic_id_partition)
    if state.deletion is not None:
        return GoneReason.PARTITION_DELETED
    record = metadata.segment(segment_id)
    if record is None:
        return GoneReason.UNKNOWN
    if record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
        return GoneReason.SEGMENT_DELETED
    first_offset = state.first_readable_offset
    if first_offset is not None and record.metadata.offsets.end_offset <= first_offset:
        return GoneReason.BELOW_LOG_START
    return None


def _partition_key_of(segment_id: RemoteLogSegmentId) -> PartitionKey:
    partition = segment_id.topic_id_partition
    return PartitionKey(partition.topic_id, partition.partition)


def _partitions(segment_ids: Iterable[RemoteLogSegmentId | None]) -> Iterable[PartitionKey]:
    return (_partition_key_of(each) for each in segment_ids if each is not None)
