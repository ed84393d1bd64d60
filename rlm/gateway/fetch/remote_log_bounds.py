"""Looks up the bounds of tiered partitions' logs in the metadata, for fetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

from rlmm.lookup import log_start_of
from rlmm.spi import PartitionKey, RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.ids import TopicIdPartition

_LIMIT_COUNT = 50_000
_FoundT = TypeVar("_FoundT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogBounds:
    """Represents the offsets that bound a log over both tiers.

    `recorded_start_offset`: neither tier may serve lower offsets, because of the log start or a
    client's DeleteRecords; None if none is recorded. `first_stored_offset`: the lowest readable
    offset in the store; None if the store has none. `trimmed_offset`: the local log is trimmed
    below this offset, or is about to be; 0 if no trim is recorded.
    """

    recorded_start_offset: int | None = None
    first_stored_offset: int | None = None
    trimmed_offset: int = 0

    def log_start(self, local_start_offset: int) -> int:
        """Return the first offset of the log over both tiers."""
        return log_start_of(
            local_start_offset,
            recorded_offset=self.recorded_start_offset,
            first_stored_offset=self.first_stored_offset,
        )


class RemoteLogBoundsView(Protocol):
    """Returns log bounds to sessions."""

    def facts(self, partition: TopicIdPartition) -> RemoteLogBounds:
        """Return a partition's bounds, which may be slightly old. Does not block on I/O."""


class LookupCache(Generic[_FoundT]):
    """Caches lookups of partitions in this process's metadata until the metadata changes.

    Thread-safe; holds no lock while it calls `look_up`. Memory: at most 50,000 results.
    """

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        look_up: Callable[[TopicIdPartition], _FoundT],
    ) -> None:
        self._metadata = metadata
        self._look_up = look_up
        self._known: dict[PartitionKey, _FoundT] = {}
        self._seen_count = 0
        self._lock = Lock()

    def forget_changed(self) -> None:
        """Remove the results of partitions that changed since the last call."""
        with self._lock:
            changed = self._metadata.changed_partitions(self._seen_count)
            if changed.partition_keys is None:
                self._known.clear()
            else:
                for key in changed.partition_keys:
                    self._known.pop(key, None)
            self._seen_count = changed.count

    def get(self, partition: TopicIdPartition) -> _FoundT:
        """Return the result as of the last `forget_changed` or later.

        Raises the errors of `look_up`.
        """
        location = PartitionKey(partition.topic_id, partition.partition)
        with self._lock:
            known, seen_count = self._known.get(location), self._seen_count
        if known is not None:
            return known
        found = self._look_up(partition)
        with self._lock:
            # Otherwise the result may predate a change that `forget_changed` has handled.
            if seen_count == self._seen_count:
                if len(self._known) >= _LIMIT_COUNT:
                    self._known.clear()
                self._known[location] = found
        return found


class MetadataLogBoundsView:
    """Reads log bounds from this process's metadata. Used by one loop; not thread-safe.

    Caches unchanged bounds, because a fetch may name all partitions of a broker.
    """

    def __init__(self, metadata: RemoteLogMetadataManager, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._known = LookupCache(metadata, self._look_up)
        self._seen_ms = -1

    def facts(self, partition: TopicIdPartition) -> RemoteLogBounds:
        now_ms = self._clock.monotonic_ms()
        if now_ms != self._seen_ms:
            self._known.forget_changed()
            self._seen_ms = now_ms
        return self._known.get(partition)

    def _look_up(self, partition: TopicIdPartition) -> RemoteLogBounds:
        state = self._metadata.partition_state(partition)
        is_stored = bool(state.lineage.entries)  # Nothing is stored before the first claim.
        return RemoteLogBounds(
            recorded_start_offset=state.first_readable_offset,
            first_stored_offset=self._metadata.earliest_log_offset(partition)
            if is_stored
            else None,
            trimmed_offset=state.trimmed_offset or 0,
        )
