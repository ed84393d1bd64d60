"""Metadata of one process without a thread: it answers from the topic's present content.

The follower thread of `rlm` applies the newest records by itself; here each query applies them
first. The topic must have one metadata partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import TypeVar
from uuid import UUID

from rlmm.events.pause import PAUSES
from rlmm.events.policy import POLICIES
from rlmm.events.rows import ClusterRows, KeptRows
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import SegmentState

V = TypeVar("V")

_ANY = TopicIdPartition(topic_id=UUID(int=0), topic="any", partition=0)


class FreshMetadata(TopicBasedRemoteLogMetadataManager):
    """The metadata manager without its thread: each query first follows the topic. Thread-safe.

    Two threads that followed at once would apply a record twice, and the second time refuse it.
    `end_offset` returns the topic's end without an act of the process, so that a query asks the
    topic only if there are new records.
    """

    end_offset: Callable[[], int] | None = None
    _following = RLock()  # One for all managers is enough: few tests have threads.

    def _wait(self, predicate: Callable[[], bool], timeout_ms: int) -> bool:
        with self._following:
            return super()._wait(predicate, timeout_ms)

    def refresh(self) -> None:
        """Apply all records of the topic; do nothing if it cannot be reached now."""
        if self.end_offset is None or self.read_offset() != self.end_offset():
            self.caught_up(_ANY)

    def read_offset(self) -> int:
        """Return how far this process has read the topic; -1 before the first record."""
        read = self._progress.positions.get(0)
        return -1 if read is None else read.offset

    def broker_time_ms(self) -> int:
        self.refresh()
        return super().broker_time_ms()

    def cluster_time_ms(self) -> int:
        self.refresh()
        return super().cluster_time_ms()

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        self.refresh()
        return super().partition_state(topic_id_partition)

    def kept_values(
        self, rows: KeptRows[V], topic_id_partition: TopicIdPartition, id_prefix: bytes = b""
    ) -> tuple[V, ...]:
        self.refresh()
        return super().kept_values(rows, topic_id_partition, id_prefix)

    def known_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        """Return the state that the topic shows, even if a subclass shows managers another one."""
        self.refresh()
        return super().partition_state(topic_id_partition)

    def segment(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        self.refresh()
        return super().segment(segment_id)

    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        self.refresh()
        return super().list_remote_log_segments(
            topic_id_partition,
            states=states,
            from_offset=from_offset,
            leader_epoch=leader_epoch,
        )

    def cluster_values(self, rows: ClusterRows[V]) -> tuple[V, ...]:
        self._refresh_for(rows)
        return super().cluster_values(rows)

    def cluster_value(self, rows: ClusterRows[V], subject: bytes) -> V | None:
        self._refresh_for(rows)
        return super().cluster_value(rows, subject)

    def _refresh_for(self, rows: object) -> None:
        """Refresh for policies and pauses, which decide, but not for registrations."""
        if rows is POLICIES or rows is PAUSES:
            self.refresh()
