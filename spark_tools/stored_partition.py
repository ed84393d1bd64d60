"""Represents one partition's metadata as a value."""

from __future__ import annotations

from dataclasses import dataclass

from rlmm.lookup import StoredLog
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPartition:
    """A partition with its state and its finished segments, ascending by base offset."""

    topic_id_partition: TopicIdPartition
    state: PartitionState
    segments: tuple[RemoteLogSegmentMetadata, ...]

    @property
    def log(self) -> StoredLog:
        """Return the readable part of the partition, computed on each access."""
        return StoredLog.of(self.topic_id_partition, self.state, self.segments)
