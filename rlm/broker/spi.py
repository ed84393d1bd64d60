"""Broker: what is learnt from, and asked of, the one broker that this process runs beside.

The implementation is rlm.broker.own_broker. Everything that depends on being the leader is asked
with the leader epoch the caller believes in, so that a deposed leader is told so, not obeyed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """A partition as the broker's metadata shows it; `leader_id` is -1 without a leader."""

    topic_id_partition: TopicIdPartition
    leader_id: int
    leader_epoch: int
    replica_ids: tuple[int, ...]
    isr_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """One answer to Metadata: the cluster, its live brokers (id → host, port), its partitions."""

    cluster_id: str
    brokers: Mapping[int, tuple[str, int]]
    partitions: Mapping[TopicIdPartition, PartitionFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffsets:
    """A led partition's offsets, asked with its leader epoch. HW and LSO are exclusive ends."""

    local_start_offset: int
    last_stable_offset: int
    high_watermark: int


class Broker(ABC):
    """Our own broker, never another one. All methods are thread-safe and bounded in time.

    All raise RetriableError if the broker can't be reached; what concerns single partitions is an
    error value in the answer (FencedError: not the leader in that epoch; NotFoundError: no such
    partition; RetriableError: not now; UnsupportedError: its policy forbids it).
    """

    @property
    @abstractmethod
    def node_id(self) -> int:
        """The broker's node id; constant."""

    @abstractmethod
    def cluster_facts(self) -> ClusterFacts:
        """Ask for the metadata of the whole cluster, as this broker sees it now."""

    @abstractmethod
    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> Mapping[TopicIdPartition, PartitionOffsets | TieredStorageError]:
        """Ask the offsets of led partitions, each with the epoch given; one answer per key."""

    @abstractmethod
    def delete_records(
        self, offsets: Mapping[TopicIdPartition, int]
    ) -> Mapping[TopicIdPartition, int | TieredStorageError]:
        """Move local log starts up in one request; answers the new local starts.

        A time-out of the broker means done on the leader though a registered follower is down:
        the start is then read again. DeleteRecords carries no leader epoch: the caller has checked
        it a moment before. Nothing is retried here or elsewhere.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection; idempotent."""
