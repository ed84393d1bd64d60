"""Defines the SPI of the broker on this process's host.

The implementation is rlm.broker.own_broker. Each method about led partitions takes the caller's
leader epochs. A partition fails if the broker does not lead it in the given epoch.
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
    """Represents the deletion of a partition's records below `before_offset`, in `leader_epoch`."""

    before_offset: int
    leader_epoch: int

    def __post_init__(self) -> None:
        # The protocol's -1 means "up to the high watermark", which no caller may request.
        if self.before_offset < 0 or self.leader_epoch < 0:
            raise ValueError(f"the deletion is invalid: offset or epoch is below 0: {self}")


class Broker(ABC):
    """Represents this host's broker, never another. Thread-safe; each call has a time limit.

    All requests raise RetriableError while the broker is unreachable, and ForeignClusterError if
    another cluster answers. Errors of single partitions are in the results.
    """

    @property
    @abstractmethod
    def node_id(self) -> int:
        """Return the broker's node id, which never changes."""

    @abstractmethod
    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        """Return the partitions of `topics` that the broker believes it leads, with their epochs.

        None means all topics.
        """

    @abstractmethod
    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        """Fetch the log start, last stable offset and high watermark of led partitions.

        A partition fails with FencedError if the broker does not lead it in that epoch.
        """

    @abstractmethod
    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        """Fetch each log's first offset with a timestamp ≥ `since_ms`; None if there is none.

        A partition fails as in `offsets`.
        """

    @abstractmethod
    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        """Move local log starts forward with one request; return each new start.

        Confirms the leader epoch right before, because DeleteRecords carries none. Sends nothing to
        other brokers. **Data loss:** deletes the records below each offset from the local log.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection. Idempotent."""
