"""Defines RemoteLogMetadataManager (KIP-405): strongly consistent metadata of stored segments.

Each change is an event in the metadata topic. `publish` returns after this process has read the
event back and folded it. So a caller reads its own writes, and knows whether the event was
accepted. If it was refused, the caller must not do what the event announced.
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
    """The outcome of a published event; `refusal` says why it was refused, None if accepted.

    `append_time_ms` is the LogAppendTime of the event's record; deadlines count from it.
    """

    refusal: str | None
    append_time_ms: int

    @property
    def accepted(self) -> bool:
        return self.refusal is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecord:
    """A segment's current metadata, with the times that decisions need, by the broker's clock.

    `copy_deadline_ms` is the deadline of the segment's copy, 0 if unknown. A segment that is still
    in COPY_SEGMENT_STARTED after its deadline is dangling. `changed_ms` is the LogAppendTime of the
    record that set the current state, and `changed_at` is its position, None only in tests. If
    `is_dead_lettered` is true, only a repair or an operator deletes the segment.
    """

    metadata: RemoteLogSegmentMetadata
    copy_deadline_ms: int
    changed_ms: int
    is_dead_lettered: bool = False
    changed_at: MetadataPosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRecord:
    """A record that the fold of this process cannot read.

    `needs_fold_version` is the fold version that can read it, 0 if none can.
    """

    needs_fold_version: int
    position: MetadataPosition


class PartitionKey(NamedTuple):
    """A partition, identified by its number and its topic's id, without the topic's name."""

    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPartitions:
    """The changed partitions up to `count`; if `partition_keys` is None, any may have changed."""

    count: int
    partition_keys: frozenset[PartitionKey] | None


class UnreadyReason(Enum):
    """Why the metadata is not ready; metrics use the value as the reason's name."""

    UNREACHABLE = "topic_unreachable"
    GONE = "topic_gone"
    WRONG_SHAPE = "topic_shape"
    CATCHING_UP = "catching_up"
    CACHE = "cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether the metadata is ready; `reason` says why it is not, empty if it is ready."""

    is_ready: bool
    reason: str = ""
    kind: UnreadyReason | None = None


class RemoteLogMetadataManager(KeptReader, RecordRemover, ABC):
    """The metadata of the partitions that this process hosts, or of all partitions. Thread-safe.

    Queries and events about a partition raise RetriableError unless its metadata is followed and
    caught up. Queries about the cluster (policies, registrations) raise it unless the cluster's
    metadata is caught up. All writes raise it while the metadata is not ready. To read or remove
    the records of an event family, call the functions of its module, for example
    `topic_policies(manager)`.
    """

    @abstractmethod
    def readiness(self) -> Readiness:
        """Return whether all records up to the topic's ends at the start are applied.

        Decide nothing until they are. If only hosted partitions are followed, this covers the
        cluster's records and the partitions that were cached at the start. Partitions that are
        added later become ready one by one.
        """

    @property
    @abstractmethod
    def identity(self) -> TopicIdentity | None:
        """Return the metadata topic that positions refer to; None until the first is followed."""

    @abstractmethod
    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """Follow the metadata of the partitions that the broker leads and follows (KIP-405).

        Idempotent; does not wait. Queries about a partition work once its metadata is caught up.
        The first call must name all partitions that the broker hosts, because it drops the cached
        metadata of all others. Has no effect if all metadata is followed.
        """

    @abstractmethod
    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Drop the metadata of partitions that the broker no longer hosts (KIP-405).

        Idempotent; does not wait.
        """

    @abstractmethod
    def follow_topics(self, topic_ids: Iterable[UUID]) -> None:
        """Follow all metadata partitions that may carry records of these topics; does not wait.

        Use it for deleted topics: no broker hosts them, and only their records name their
        partitions. Each call replaces the topics of the previous call.
        """

    @abstractmethod
    def publish(self, event: Event) -> PublishResult:
        """Write an event, wait until it is applied here, and return whether it was accepted.

        Raises RetriableError if the event was not written, or if the result is not known within the
        deadline. In the second case the event may still be appended later, so conclude nothing. An
        event is never written twice. Until the result is known, no other event is written to the
        same metadata partition. Also raises RetriableError, and writes nothing, for a new read
        lease of a partition with READ_LEASES_MAX_COUNT unexpired ones, and for a new anomaly of a
        partition with ANOMALIES_MAX_COUNT.
        """

    @abstractmethod
    def write_tombstones(self, segment_id: RemoteLogSegmentId) -> None:
        """Write tombstones for all records of a segment in DELETE_SEGMENT_FINISHED.

        Also removes the account of its offload segment, and the accounts of failed attempts that
        left no segment. Only the partition's owner may call this. Raises RetriableError if the
        segment is in an earlier state, or while late records of it may still be appended.
        """

    @abstractmethod
    def write_partition_tombstones(self, topic_id_partition: TopicIdPartition) -> None:
        """Write tombstones for the records of a partition in DELETE_PARTITION_FINISHED.

        Keeps the records of the deletion, because they make the fold refuse late copies. Any
        process may call this. Does nothing if the partition is in another state. Raises
        RetriableError while `segment` still returns a segment of the partition.
        """

    @abstractmethod
    def write_topic_tombstones(self, topic_id: UUID) -> None:
        """Write tombstones for the policy and the pauses of a topic id.

        Call this only if nothing of the topic is stored any more.
        """

    def caught_up(
        self, topic_id_partition: TopicIdPartition, *, timeout_ms: int | None = None
    ) -> bool:
        """Wait until the records up to the topic's current end are applied; return False if not.

        The default of `timeout_ms` is the time for which `publish` waits for its event.
        """
        return bool(self.those_caught_up((topic_id_partition,), timeout_ms=timeout_ms))

    @abstractmethod
    def those_caught_up(
        self, partitions: Iterable[TopicIdPartition], *, timeout_ms: int | None = None
    ) -> frozenset[TopicIdPartition]:
        """Return the partitions for which `caught_up` is true, with one wait for all of them."""

    @abstractmethod
    def broker_time_ms(self) -> int:
        """Return a lower bound of the brokers' clock: the newest applied LogAppendTime, or 0."""

    @abstractmethod
    def cluster_time_ms(self) -> int:
        """Return the LogAppendTime of the last record applied from the registrations' partition.

        Returns 0 if there is none. Heartbeats are compared with this time: while this process
        cannot read registrations, records of other metadata partitions must not make processes look
        gone.
        """

    @abstractmethod
    def is_cluster_current(self, *, timeout_ms: int | None = None) -> bool:
        """Wait until all present policies, pauses and registrations are applied; False if not.

        The default of `timeout_ms` is that of `caught_up`.
        """

    @abstractmethod
    def changed_partitions(self, since_count: int) -> ChangedPartitions:
        """Return the partitions that changed since the `count` of an earlier result; never waits.

        Pass 0 in the first call. A value that was queried after one call is still current if the
        result of the next call does not include its partition.
        """

    @abstractmethod
    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        """Return the folded state of a partition; empty if nothing is known."""

    @abstractmethod
    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        """Return the known partitions of a topic id, ascending; `topic` is their topic's name.

        The result covers all current records of the metadata topic. Raises RetriableError if these
        are not applied within a short wait, or if not all metadata is followed: call
        `follow_topics` first.
        """

    @abstractmethod
    def newer_record(self, topic_id_partition: TopicIdPartition) -> NewerRecord | None:
        """Return a record that concerns the partition but is unreadable for this fold, or None.

        It can concern the partition alone, its topic, or the whole cluster. While such a record
        exists, queries work, but do not copy, trim or delete: the record may forbid it.
        """

    @abstractmethod
    def remote_log_segment_metadata(
        self, topic_id_partition: TopicIdPartition, offset: int, *, leader_epoch: int | None = None
    ) -> RemoteLogSegmentMetadata | None:
        """Return the COPY_SEGMENT_FINISHED segment with the record of `leader_epoch` at `offset`.

        If `leader_epoch` is None, the log's lineage gives the epoch; returns None if the lineage
        does not cover the offset. The log start does not limit the result.

        Of several segments, the one with the highest end offset in that epoch wins, then the one
        with the highest start offset, then the greatest id. So the result depends only on the set
        of finished segments. In Kafka's RemoteLogLeaderEpochState, it depends on the order of
        arrival. Kafka takes the floor of the start offsets that it still references. It drops a
        start offset when a segment arrives that begins no later and reaches the epoch's end so far.
        For duplicates, contained segments and longer segments with the same start, both return the
        same segment. If two segments partly overlap, Kafka may find neither of them.
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

        If `states` is None, the result omits only DELETE_SEGMENT_FINISHED, as in KIP-405. With
        `leader_epoch`, the result contains only segments with records of that epoch, whether or
        not the epoch is in the log's lineage.
        """

    @abstractmethod
    def highest_offset_for_epoch(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int
    ) -> int | None:
        """Return an epoch's highest offset in finished segments; None if there is none (KIP-405).

        Unlike Kafka's implementation, it ignores segments that have been deleted since.
        """

    @abstractmethod
    def earliest_log_offset(self, topic_id_partition: TopicIdPartition) -> int | None:
        """Return the first offset of the log's lineage that is readable and stored, or None.

        This is KIP-405's earliestLogOffset, but never below the log start. In released versions of
        Kafka, RemoteLogManager returns the start of the first segment in the first epoch that has
        a segment.
        """

    @abstractmethod
    def next_segment_with_txn_index(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """Return the first segment with a transaction index; search from `offset` (KIP-1058).

        The search begins at the segment that contains `offset`, and looks up each next segment at
        the end of the previous one, within the epoch. Returns None if it reaches a hole or the end
        of the epoch.
        """

    @abstractmethod
    def remote_log_size_bytes(
        self, topic_id_partition: TopicIdPartition, *, leader_epoch: int | None = None
    ) -> int:
        """Return the bytes of the finished segments with records of an epoch (KIP-852).

        A segment counts in full in each of its epochs. If `leader_epoch` is None, each segment that
        begins in the log's lineage counts once.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop following the topic; idempotent."""
