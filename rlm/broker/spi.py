"""Broker: what is learnt from, and asked of, the one broker that this process runs beside.

The implementation is rlm.broker.own_broker. Everything that depends on being the leader is asked
with the leader epoch the caller believes in, so that a deposed leader is told so, not obeyed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from rlm.broker.delete_records import RecordDeletion
from rlm.broker.list_offsets import PartitionOffsets
from rlm.broker.partition_results import PartitionResults
from rsm.segment.ids import TopicIdPartition


class Broker(ABC):
    """Our own broker, never another one. All methods are thread-safe and bounded in time.

    All raise RetriableError while the broker cannot be reached, and ForeignClusterError if what
    answers belongs to another cluster. What concerns single partitions is in the results.
    """

    @property
    @abstractmethod
    def node_id(self) -> int:
        """The broker's node id; constant."""

    @abstractmethod
    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        """The partitions that the broker believes to lead, each with its leader epoch."""

    @abstractmethod
    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        """Log start, last stable offset and high watermark of led partitions.

        A partition fails with FencedError if the broker does not lead it in that epoch.
        """

    @abstractmethod
    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        """The first offset of led partitions whose record is not older; None where all are.

        Of what is committed; fails as `offsets`.
        """

    @abstractmethod
    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        """Move local log starts up in one request; a value is the new start.

        DeleteRecords carries no leader epoch, so the broker is asked with it right before. A
        time-out means done on the leader though a follower is down. Nothing is sent elsewhere.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection; idempotent."""
