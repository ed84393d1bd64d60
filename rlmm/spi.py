"""RemoteLogMetadataManager (KIP-405): strongly consistent metadata of stored segments.

One way in: an event is published to the metadata topic, and `publish` returns when this process
has itself read it back and folded it; so whoever published reads its own writes, and knows whether
it was accepted. No side effect may follow a refusal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from rlmm.events.processes import ProcessRegistered
from rlmm.events.secrets import ClusterSecret
from rlmm.events.values import Event, PausableTask, TopicPolicy
from rlmm.partition_state import PartitionState
from rlmm.positions import TopicIdentity
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """What became of a published event. `refusal` is None if it was accepted, else why not.

    `append_time_ms` is the broker's time of the record: deadlines count from it.
    """

    refusal: str | None
    append_time_ms: int

    @property
    def accepted(self) -> bool:
        return self.refusal is None


class MetadataPosition(NamedTuple):
    """Where a record stands in the metadata topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecord:
    """A segment's current metadata and the log-append times of its life that decisions need.

    `copy_deadline_ms` is when its copy attempt ends by the broker's clock (0: unknown); a
    COPY_SEGMENT_STARTED past it is dangling. `changed_ms` is when the current state was written.
    `dead_lettered`: its deletion is a repair job's matter now. `changed_at` is where the record of
    the current state stands; None only where a test does not care.
    """

    metadata: RemoteLogSegmentMetadata
    copy_deadline_ms: int
    changed_ms: int
    dead_lettered: bool = False
    changed_at: MetadataPosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRecord:
    """A record that needs newer rules of folding than this process has; 0: no rules read it."""

    needs_fold_version: int
    position: MetadataPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered process and the broker's time of its last heartbeat."""

    process: ProcessRegistered
    heartbeat_ms: int


class PartitionKey(NamedTuple):
    """A partition by its topic's id alone."""

    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPartitions:
    """The partitions of which anything changed up to `count`; None: it may be any."""

    count: int
    partition_keys: frozenset[PartitionKey] | None


class UnreadyReason(Enum):
    """What keeps the metadata from being ready; the value is its name in metrics."""

    UNREACHABLE = "topic_unreachable"
    GONE = "topic_gone"
    WRONG_SHAPE = "topic_shape"
    CATCHING_UP = "catching_up"
    CACHE = "cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether answers are complete as of the start; `reason` says what is missing, else empty."""

    ready: bool
    reason: str = ""
    kind: UnreadyReason | None = None


class RemoteLogMetadataManager(ABC):
    """Metadata of the partitions that this process hosts, or of all. All methods are thread-safe.

    Questions and events about a partition raise RetriableError where its metadata is not followed,
    or was not caught up with since it is; those about the cluster (policies, registrations) before
    the process is ready for the first time.
    """

    @abstractmethod
    def readiness(self) -> Readiness:
        """Ready when the ends seen at start have been applied; no decision before that.

        Of a process that follows what it hosts, this is about the cluster, and about what its cache
        held at the start; partitions that were added later are ready each by itself.
        """

    @property
    @abstractmethod
    def identity(self) -> TopicIdentity | None:
        """The metadata topic that positions are of; None before one was followed."""

    @abstractmethod
    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """The broker leads and follows these partitions (KIP-405); idempotent, does not wait.

        Their metadata is followed from now on, and answers once it was caught up with. The first
        call names all that the broker hosts: metadata of others that an earlier run has left is
        dropped. Does nothing where all metadata is followed.
        """

    @abstractmethod
    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        """The broker hosts these partitions no longer (KIP-405); idempotent, does not wait.

        What is known of them is dropped from this process.
        """

    @abstractmethod
    def follow_topics(self, topic_ids: Iterable[UUID]) -> None:
        """Follow all that is said of these topics, wherever they are hosted; does not wait.

        For topics that were deleted: nobody hosts them any more, and which partitions they had is
        known by their records alone. Holds until the next call; none ends it.
        """

    @abstractmethod
    def publish(self, event: Event) -> PublishResult:
        """Write an event, wait until it was applied here, and say whether it was accepted.

        Raises RetriableError if it was not written, or that is not known within the deadline: then
        the event may still come through, and nothing may be concluded. Never writes an event twice,
        nor another one to its metadata partition before it is known. A read lease beyond
        READ_LEASES_MAX_COUNT unexpired ones of its partition is not written: RetriableError. Nor
        is an anomaly beyond ANOMALIES_MAX_COUNT.
        """

    @abstractmethod
    def write_tombstones(self, segment_id: RemoteLogSegmentId) -> None:
        """Write tombstones for all records of a segment in DELETE_SEGMENT_FINISHED.

        Only its partition's owner may, and only when no late record of it can come any more.
        """

    @abstractmethod
    def write_partition_tombstones(self, topic_id_partition: TopicIdPartition) -> None:
        """Write tombstones for all that was said of a partition in DELETE_PARTITION_FINISHED.

        Its deletion's own records stay for ever: by them late copies are refused. Anyone may.
        Does nothing in another state. RetriableError while records of its segments are left, but
        for refused ones of segments that never were.
        """

    @abstractmethod
    def write_policy_tombstones(self, topic_id: UUID) -> None:
        """Write tombstones for the policy of a topic id of which nothing is stored any more.

        And for what was paused of it.
        """

    @abstractmethod
    def release_read_lease(self, topic_id_partition: TopicIdPartition, lease_id: UUID) -> None:
        """End a lease of one's own before it expires; nothing happens if it is not known."""

    @abstractmethod
    def clear_anomaly(self, topic_id_partition: TopicIdPartition, anomaly_id: UUID) -> None:
        """End an anomaly, after a read or a look at the object that succeeded; else never.

        Anyone may; nothing happens if it is not known. Does not wait until it is applied.
        """

    def caught_up(
        self, topic_id_partition: TopicIdPartition, *, timeout_ms: int | None = None
    ) -> bool:
        """Ask the topic for its end now, wait until it is applied; False if not in time.

        Waits for `timeout_ms` at most, or as long as the manager waits for what it published.
        """
        return bool(self.those_caught_up((topic_id_partition,), timeout_ms=timeout_ms))

    @abstractmethod
    def those_caught_up(
        self, partitions: Iterable[TopicIdPartition], *, timeout_ms: int | None = None
    ) -> frozenset[TopicIdPartition]:
        """As `caught_up` for many with one question: those for which it holds in time."""

    @abstractmethod
    def broker_time_ms(self) -> int:
        """A lower bound of the broker's clock: the newest LogAppendTime applied. 0 if none."""

    @abstractmethod
    def changed_partitions(self, since_count: int) -> ChangedPartitions:
        """What changed since an earlier answer's count, 0 for the first time; never waits.

        What was looked up behind an answer of this, and is not in the next, is still so.
        """

    @abstractmethod
    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        """The partition's claims, lineage, log start, trims, leases; empty if nothing is known."""

    @abstractmethod
    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        """The partitions of a topic id of which anything is known, ascending; `topic` names them.

        Whole where all metadata is followed, or `follow_topics` named the topic: all that the
        metadata topic holds now is known. RetriableError if that is not so in a moment.
        """

    @abstractmethod
    def newer_record(self, topic_id_partition: TopicIdPartition) -> NewerRecord | None:
        """A record about this partition, or about all, that only a newer version can fold.

        While there is one, what is known is served, but nothing may be copied, trimmed or deleted:
        it may say that this must not be.
        """

    @abstractmethod
    def remote_log_segment_metadata(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """The COPY_SEGMENT_FINISHED segment that holds `offset` as `leader_epoch` wrote it.

        Of several, the one that reaches furthest in that epoch; of those that reach equally far
        the one that begins last; of those the greatest id. A pure function of the set of finished
        segments. Kafka's RemoteLogLeaderEpochState answers with the floor of the start offsets
        that are still referenced, and drops a start from them when a segment arrives that begins
        no later and reaches the epoch's end so far: so for duplicates, for one that contains
        another and for a longer one of the same start the answers are the same, but Kafka's depends
        on the order of arrival, and where two overlap in part it may have none though one of them
        holds the offset.
        """

    @abstractmethod
    def segment(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        """One segment by its id, in any state."""

    @abstractmethod
    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        """Segments that end above `from_offset`, ascending by base offset; a consistent snapshot.

        Without `states` all but DELETE_SEGMENT_FINISHED, as KIP-405 lists them. With `leader_epoch`
        only those that hold records of that epoch, of the log's lineage or not.
        """

    @abstractmethod
    def highest_offset_for_epoch(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int
    ) -> int | None:
        """The last stored offset of an epoch over its finished segments (KIP-405), or None.

        Kafka's remembers segments that were deleted since; this one does not.
        """

    @abstractmethod
    def earliest_log_offset(self, topic_id_partition: TopicIdPartition) -> int | None:
        """The first offset that is stored, in the log's lineage and readable; None if none is.

        KIP-405's earliestLogOffset; as released, RemoteLogManager takes the start of the first
        segment of the lineage's first epoch that has one. Not below the log start.
        """

    @abstractmethod
    def next_segment_with_txn_index(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """The first segment with a transaction index, from the one that holds `offset` on.

        As repeated look-ups would find it, each at the end of the segment before, within one epoch;
        None at a hole and at the epoch's end (KIP-1058).
        """

    @abstractmethod
    def remote_log_size_bytes(
        self, topic_id_partition: TopicIdPartition, *, leader_epoch: int | None = None
    ) -> int:
        """Bytes of the finished segments that hold records of an epoch (KIP-852's remoteLogSize).

        A segment counts whole in each of its epochs. Without `leader_epoch`, of those that begin in
        the log's lineage, each once.
        """

    @abstractmethod
    def topic_policies(self) -> tuple[TopicPolicy, ...]:
        """The newest policy of each topic id, in no order."""

    @abstractmethod
    def topic_policy(self, topic_id: UUID) -> TopicPolicy | None:
        """The newest policy of one topic id."""

    @abstractmethod
    def topic_policy_position(self, topic_id: UUID) -> MetadataPosition | None:
        """Where the record of that policy stands; None if it is not known (an older cache)."""

    @abstractmethod
    def paused_tasks(self, topic_id: UUID) -> frozenset[PausableTask]:
        """What is paused of one topic id now."""

    @abstractmethod
    def cluster_secret(self) -> ClusterSecret | None:
        """What HTTP requests are signed with; None before any was set. Never to be shown."""

    @abstractmethod
    def registrations(self) -> tuple[Registration, ...]:
        """All processes that ever registered and were not removed; judge life by heartbeat."""

    @abstractmethod
    def close(self) -> None:
        """Stop following the topic; idempotent."""
