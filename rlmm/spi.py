"""RemoteLogMetadataManager (KIP-405): strongly consistent metadata of stored segments.

All changes are events in the metadata topic. `publish` returns after this process has read its
event back and folded it. So a caller reads its own writes and knows whether the event was accepted.
After a refusal, a caller must not carry out the side effect that the event announced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.rows import KeptReader, RecordRemover
from rlmm.positions import MetadataPosition, TopicIdentity
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """The outcome of a published event; `refusal` is None if it was accepted, else the reason.

    `append_time_ms` is the record's LogAppendTime; deadlines count from it.
    """

    refusal: str | None
    append_time_ms: int

    @property
    def accepted(self) -> bool:
        return self.refusal is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecord:
    """A segment's current metadata, with the log-append times that decisions need.

    `copy_deadline_ms` is the end of its copy attempt by the broker's clock, or 0 if unknown. A
    COPY_SEGMENT_STARTED past its deadline is dangling. `changed_ms` is the LogAppendTime of the
    current state. If `is_dead_lettered`, only a repair or an operator deletes it. `changed_at` is
    the position of the current state's record; it is None only in tests.
    """

    metadata: RemoteLogSegmentMetadata
    copy_deadline_ms: int
    changed_ms: int
    is_dead_lettered: bool = False
    changed_at: MetadataPosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRecord:
    """A record that this process's fold cannot read.

    `needs_fold_version` is 0 if the fold of no version can read it.
    """

    needs_fold_version: int
    position: MetadataPosition


class PartitionKey(NamedTuple):
    """A partition, identified by its topic's id alone."""

    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPartitions:
    """The partitions that changed up to `count`; `partition_keys` None: any may have changed."""

    count: int
    partition_keys: frozenset[PartitionKey] | None


class UnreadyReason(Enum):
    """Why the metadata is not ready; the value is the reason's name in metrics."""

    UNREACHABLE = "topic_unreachable"
    GONE = "topic_gone"
    WRONG_SHAPE = "topic_shape"
    CATCHING_UP = "catching_up"
    CACHE = "cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether the records from before the start are applied; `reason` is empty if they are."""

    is_ready: bool
    reason: str = ""
    kind: UnreadyReason | None = None


class RemoteLogMetadataManager(KeptReader, RecordRemover, ABC):
    """Metadata of the partitions that this process hosts, or of all. All methods are thread-safe.

    Queries and events about a partition raise RetriableError unless its metadata is followed and
    caught up. Queries about the cluster (policies, registrations) raise it unless the cluster's
    metadata is caught up, and all writes raise it while the metadata is not ready. Functions of
    the families' modules read and remove the records of families, for example
    `topic_policies(manager)`.
    """

    @abstractmethod
    def readiness(self) -> Readiness:
        """Return whether all records up to the ends seen at the start are applied.

        No decision may precede that. If only hosted partitions are followed, this covers the
        cluster's records and the partitions that were cached at the start. Partitions that are
        added later become ready one by one.
        """

    @property
    @abstractmethod
    def identity(self) -> TopicIdentity | None:
        """The metadata topic that positions refer to; None until a topic was followed."""

    @abstractmethod
    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """Follow the metadata of the partitions that the broker leads and follows (KIP-405).

        Idempotent; does not wait. Queries about a partition work once its metadata is caught up.
        The first call must name all partitions that the broker hosts: it drops the metadata of
        others that an earlier run left. Does nothing if all metadata is followed.
        """

    @abstractmethod
    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Drop the metadata of partitions that the broker no longer hosts (KIP-405).

        Idempotent; does not wait.
        """

    @abstractmethod
    def follow_topics(self, topic_ids: Iterable[UUID]) -> None:
        """Follow all metadata partitions that may carry records of these topics; does not wait.

        This is for deleted topics: no broker hosts them, and only their records name their
        partitions. Each call replaces the topics of the previous call.
        """

    @abstractmethod
    def publish(self, event: Event) -> PublishResult:
        """Write an event, wait until it is applied here, and return whether it was accepted.

        Raises RetriableError if the event was not written, or if the result is not known within the
        deadline. In the second case the event may still be appended later; conclude nothing. An
        event is never written twice. No other event is written to its metadata partition before the
        result is known. Raises RetriableError, and writes nothing, for a read lease beyond
        READ_LEASES_MAX_COUNT unexpired ones of its partition, and for an anomaly beyond
        ANOMALIES_MAX_COUNT.
        """

    @abstractmethod
    def write_tombstones(self, segment_id: RemoteLogSegmentId) -> None:
        """Write tombstones for all records of a segment in DELETE_SEGMENT_FINISHED.

        Also removes the account of its offload segment, and those of failed attempts without a
        segment. Only the partition's owner may call this. Raises RetriableError if the segment is
        in an earlier state, and while late records of it may still be appended.
        """

    @abstractmethod
    def write_partition_tombstones(self, topic_id_partition: TopicIdPartition) -> None:
        """Write tombstones for the records of a partition in DELETE_PARTITION_FINISHED.

        The records of its deletion are never removed, because they make the fold refuse late
        copies. Any process may call this. Does nothing in another state. Raises RetriableError
        while `segment` returns one of its segments.
        """

    @abstractmethod
    def write_topic_tombstones(self, topic_id: UUID) -> None:
        """Write tombstones for a topic id's policy and pauses.

        Call this only when nothing of the topic is stored.
        """

    def caught_up(
        self, topic_id_partition: TopicIdPartition, *, timeout_ms: int | None = None
    ) -> bool:
        """Ask the topic for its end and wait until it is applied; return False if that fails.

        The default of `timeout_ms` is the manager's limit for its own published events.
        """
        return bool(self.those_caught_up((topic_id_partition,), timeout_ms=timeout_ms))

    @abstractmethod
    def those_caught_up(
        self, partitions: Iterable[TopicIdPartition], *, timeout_ms: int | None = None
    ) -> frozenset[TopicIdPartition]:
        """Return the partitions for which `caught_up` is true; requests all ends at once."""

    @abstractmethod
    def broker_time_ms(self) -> int:
        """Return a lower bound of the broker's clock: the newest LogAppendTime applied, or 0."""

    @abstractmethod
    def changed_partitions(self, since_count: int) -> ChangedPartitions:
        """Return the partitions that changed since the `count` of an earlier result; never waits.

        Pass 0 at first. A value that you query after one result is still current if the next
        result does not name its partition.
        """

    @abstractmethod
    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        """Return the folded state of a partition; empty if nothing is known."""

    @abstractmethod
    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        """Return the known partitions of a topic id, ascending; `topic` is their topic's name.

        The result is complete if all metadata is followed or `follow_topics` named the topic: then
        it covers all current records of the metadata topic. Raises RetriableError if these are not
        applied within a short wait.
        """

    @abstractmethod
    def newer_record(self, topic_id_partition: TopicIdPartition) -> NewerRecord | None:
        """Return a record about this partition, its topic or all that only newer rules can fold.

        While there is one, queries work, but nothing may be copied, trimmed or deleted: the record
        may forbid it.
        """

    @abstractmethod
    def remote_log_segment_metadata(
        self, topic_id_partition: TopicIdPartition, offset: int, *, leader_epoch: int | None = None
    ) -> RemoteLogSegmentMetadata | None:
        """Return the COPY_SEGMENT_FINISHED segment that has `offset` as `leader_epoch` wrote it.

        Without `leader_epoch`, the log's lineage gives the epoch, and the result is None if it has
        none for the offset. The log start does not limit the result.

        Of several segments, the one with the highest end in that epoch wins, then the one with the
        highest start, then the greatest id. The result depends only on the set of finished
        segments. Kafka's RemoteLogLeaderEpochState depends on the order of arrival: it takes the
        floor of the start offsets that it still references. It drops a start offset when a segment
        arrives that begins no later and reaches the epoch's end so far. For duplicates, contained
        segments and longer segments with the same start, both return the same segment. Where two
        segments overlap in part, Kafka may find none although one of them has the offset.
        """

    @abstractmethod
    def segment(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        """Return one segment by its id, in any state; None if it is unknown."""

    @abstractmethod
    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        """Return segments that end above `from_offset`, by ascending base offset; a snapshot.

        Without `states`, it omits only DELETE_SEGMENT_FINISHED, as in KIP-405. With `leader_epoch`,
        it returns only segments with records of that epoch, in the log's lineage or not.
        """

    @abstractmethod
    def highest_offset_for_epoch(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int
    ) -> int | None:
        """Return the last stored offset of an epoch over its finished segments (KIP-405), or None.

        Unlike Kafka's implementation, it ignores segments that were deleted since.
        """

    @abstractmethod
    def earliest_log_offset(self, topic_id_partition: TopicIdPartition) -> int | None:
        """Return the first readable offset that is stored in the log's lineage; None if none is.

        This is KIP-405's earliestLogOffset, never below the log start. In released versions of
        Kafka, RemoteLogManager takes the first segment's start in the first epoch that has one.
        """

    @abstractmethod
    def next_segment_with_txn_index(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """Return the first segment with a transaction index, from the one that has `offset` on.

        The search looks up each next segment at the end of the previous one, within one epoch. It
        returns None at a hole and at the epoch's end (KIP-1058).
        """

    @abstractmethod
    def remote_log_size_bytes(
        self, topic_id_partition: TopicIdPartition, *, leader_epoch: int | None = None
    ) -> int:
        """Return the bytes of the finished segments with records of an epoch (KIP-852).

        A segment counts in full in each of its epochs. Without `leader_epoch`, each segment that
        begins in the log's lineage counts once.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop following the topic; idempotent."""
