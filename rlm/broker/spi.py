"""Broker: the SPI of the one broker on this process's host.

The implementation is rlm.broker.own_broker. Each method about led partitions takes the
caller's leader epochs; a partition fails if the broker does not lead it in that epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.broker.partition_results import PartitionResults
from rlm.facts.partition_offsets import PartitionOffsets
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDeletion:
    """Represents the deletion of records below `before_offset`, in `leader_epoch`."""

    before_offset: int
    leader_epoch: int

    def __post_init__(self) -> None:
        # -1 is the protocol's "up to the high watermark", which no caller may request.
        if self.before_offset < 0 or self.leader_epoch < 0:
            raise ValueError(f"invalid deletion of records: a negative offset or epoch: {self}")


class Broker(ABC):
    """Represents this host's broker, never another. Methods are thread-safe and bounded in time.

    All requests raise RetriableError while the broker is unreachable, and ForeignClusterError if
    another cluster answers. Errors of single partitions are in the results.
    """

    @property
    @abstractmethod
    def node_id(self) -> int:
        """Return the broker's node id; constant."""

    @abstractmethod
    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        """Return the partitions of `topics` that the broker believes it leads, with their epochs.

        None means all topics.
        """

    @abstractmethod
    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        """Fetch log start, last stable offset and high watermark of led partitions.

        A partition fails with FencedError if the broker does not lead it in that epoch.
        """

    @abstractmethod
    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        """Fetch each log's first offset with a timestamp ≥ `since_ms`; None if there is none.

        Fails as `offsets`.
        """

    @abstractmethod
    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        """Move local log starts up with one request; return each new start.

        DeleteRecords carries no leader epoch, so the epoch is confirmed right before.
        REQUEST_TIMED_OUT means that the leader has deleted, and a follower is down or slow. Asks no
        other broker.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection; idempotent."""
