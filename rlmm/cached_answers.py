"""Answers the queries of a metadata manager from its cache.

During the whole query, its metadata partition must be followed and caught up. Otherwise, metadata
that is being dropped or read again would look as if it did not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.rows import ClusterRows, KeptRows
from rlmm.follow.follower import Follower
from rlmm.partitioner import metadata_partition
from rlmm.positions import CLUSTER_PARTITION, TopicIdentity
from rlmm.spi import (
    ChangedPartitions,
    NewerRecord,
    Readiness,
    RemoteLogMetadataManager,
    SegmentRecord,
)
from rlmm.state.partition_state import PartitionState
from rsm.segment.errors import RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

T = TypeVar("T")


class CachedAnswers(RemoteLogMetadataManager):
    """Implements the queries of the SPI; subclasses add publishing and waiting. Thread-safe."""

    def __init__(self, cache: MetadataCache, follower: Follower) -> None:
        """Answer from `cache`, which `follower` feeds."""
        self._cache = cache
        self._follower = follower

    def readiness(self) -> Readiness:
        return self._follower.readiness

    @property
    def identity(self) -> TopicIdentity | None:
        return self._follower.identity

    def changed_partitions(self, since_count: int) -> ChangedPartitions:
        return self._cache.changes.since(since_count)

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        return self._answer(
            topic_id_partition, lambda: self._cache.partition_state(topic_id_partition)
        )

    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        identity = self._follower.identity
        if identity is None:
            raise RetriableError(
                "cannot answer a query: the metadata is not ready", reason=self.readiness().reason
            )
        before = {p: self._catching_up(p) for p in range(identity.partition_count)}
        found = self._cache.partitions_of(topic_id, topic)
        if not before.items() <= self._follower.caught_up.items():
            raise RetriableError("cannot answer a query: its metadata was dropped", topic=topic)
        return found

    def newer_record(self, topic_id_partition: TopicIdPartition) -> NewerRecord | None:
        return self._answer(
            topic_id_partition, lambda: self._cache.newer_record(topic_id_partition)
        )

    def remote_log_segment_metadata(
        self, topic_id_partition: TopicIdPartition, offset: int, *, leader_epoch: int | None = None
    ) -> RemoteLogSegmentMetadata | None:
        return self._answer(
            topic_id_partition,
            lambda: self._cache.finished_segment(topic_id_partition, offset, leader_epoch),
        )

    def segment(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        return self._answer(segment_id.topic_id_partition, lambda: self._cache.segment(segment_id))

    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        found = self._answer(
            topic_id_partition,
            lambda: self._cache.segments(
                topic_id_partition,
                states=states,
                from_offset=from_offset,
                leader_epoch=leader_epoch,
            ),
        )
        return iter(found)

    def highest_offset_for_epoch(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int
    ) -> int | None:
        end_offset = self._answer(
            topic_id_partition,
            lambda: self._cache.highest_end_offset(topic_id_partition, leader_epoch),
        )
        return None if end_offset is None else end_offset - 1

    def earliest_log_offset(self, topic_id_partition: TopicIdPartition) -> int | None:
        return self._answer(
            topic_id_partition, lambda: self._cache.earliest_log_offset(topic_id_partition)
        )

    def next_segment_with_txn_index(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._answer(
            topic_id_partition,
            lambda: self._cache.next_transactional_segment(
                topic_id_partition, leader_epoch, offset
            ),
        )

    def remote_log_size_bytes(
        self, topic_id_partition: TopicIdPartition, *, leader_epoch: int | None = None
    ) -> int:
        return self._answer(
            topic_id_partition, lambda: self._cache.size_bytes(topic_id_partition, leader_epoch)
        )

    def kept_values(
        self, rows: KeptRows[T], topic_id_partition: TopicIdPartition, id_prefix: bytes = b""
    ) -> tuple[T, ...]:
        return self._answer(
            topic_id_partition,
            lambda: self._cache.kept_values(rows, topic_id_partition, id_prefix),
        )

    def cluster_values(self, rows: ClusterRows[T]) -> tuple[T, ...]:
        return self._answer(None, lambda: self._cache.cluster_values(rows))

    def cluster_value(self, rows: ClusterRows[T], subject: bytes) -> T | None:
        return self._answer(None, lambda: self._cache.cluster_value(rows, subject))

    def _answer(self, about: TopicIdPartition | None, ask: Callable[[], T]) -> T:
        """Return `ask()`, a query about a partition; about the cluster if `about` is None.

        Raises RetriableError if the metadata is not ready, not followed, or not caught up.
        """
        identity = self._follower.identity
        if identity is None:
            raise RetriableError(
                "cannot answer a query: the metadata is not ready", reason=self.readiness().reason
            )
        partition = CLUSTER_PARTITION
        if about is not None:
            partition = metadata_partition(about, identity.partition_count)
        before = self._catching_up(partition)
        found = ask()
        if self._follower.caught_up.get(partition) != before:
            raise RetriableError(
                "cannot answer a query: its metadata was dropped", metadata_partition=partition
            )
        return found

    def _catching_up(self, partition: int) -> int:
        """Return the number of the metadata partition's last catch-up.

        Raises RetriableError if the partition is not followed or not caught up.
        """
        number = self._follower.caught_up.get(partition)
        if number is None:
            raise RetriableError(
                "cannot use the metadata: its metadata partition is not followed or not caught up",
                metadata_partition=partition,
                reason=self.readiness().reason,
            )
        return number
