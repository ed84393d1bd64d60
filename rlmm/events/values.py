"""The events of the metadata topic, as values; rlmm.fold.rules defines their effects.

Each event has its own id. Where acceptance depends on order (segments, claims, trims, log starts,
gaps, requests), a record's key ends with that id. So no record replaces another, and compaction
cannot remove an accepted record in favor of a refused one. The owner writes tombstones for what is
superseded. Kinds in which the last writer wins (policies, pauses, registrations, read leases) have
one key per subject; Kafka's compaction alone removes old records of those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from uuid import UUID

from rlmm.events.anomaly import AnomalyReported
from rlmm.events.processes import ProcessRegistered
from rlmm.events.secrets import ClusterSecretSet
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange

UNLIMITED = -1
AS_TOTAL_RETENTION = -2
AS_LOCAL_RETENTION = -1
AS_MANAGERS_SETTING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEvent:
    """A segment's next state, with its whole metadata.

    `expected_state`: for DELETE_SEGMENT_STARTED, the state that it was decided on (None: nothing
    known). `copy_deadline_ms`: for COPY_SEGMENT_FINISHED, the LogAppendTime after which it is too
    late. It is 0 for COPY_SEGMENT_STARTED, and without a deadline (a catalogue that was rebuilt
    from the store). `copy_timeout_ms`: for COPY_SEGMENT_STARTED, the limit of this attempt.
    """

    event_id: UUID
    metadata: RemoteLogSegmentMetadata
    expected_state: SegmentState | None = None
    copy_timeout_ms: int = 0
    copy_deadline_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDeadLettered:
    """A segment whose deletion failed too often, so that it has a dead letter.

    The segment stays in DELETE_SEGMENT_STARTED. From now on, only a repair job or an operator
    retries.
    """

    event_id: UUID
    segment_id: RemoteLogSegmentId
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipClaimed:
    """A leader claimed a partition; contains the whole lineage. Never tombstoned."""

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    lineage: Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLogTrimmed:
    """The leader is about to trim the local log up to `offset`; published before the trim."""

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    offset: int
    lineage: Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartAdvanced:
    """Nothing below `offset` is readable; published before anything is deleted."""

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartRequested:
    """A client has deleted the records below `offset`, and the broker has accepted that.

    Any gateway may write it, unfenced: requests form a maximum, never above the high watermark. The
    leader makes it the log start. `leader_epoch` is that of the broker that accepted it, or -1 for
    the owner's epoch when it is folded. Where a later epoch begins below, it reaches only to there.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    offset: int
    leader_epoch: int = -1


class RemotePartitionDeleteState(Enum):
    """KIP-405's states of deleting all stored data of a partition, in the order of their values."""

    DELETE_PARTITION_MARKED = 1
    DELETE_PARTITION_STARTED = 2
    DELETE_PARTITION_FINISHED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadata:
    """The next state of deleting all stored data of a topic-id-partition (KIP-405).

    Any process may write it, because a deleted topic has no leader. Each state is accepted once, in
    order. After MARKED no copy begins. Write FINISHED only when nothing is stored. Never
    tombstoned.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    state: RemotePartitionDeleteState
    event_timestamp_ms: int
    broker_id: int


READ_LEASE_MAX_MS = 24 * 3600 * 1000
READ_LEASES_MAX_COUNT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLeaseTaken:
    """A job reads the objects of `offsets` and needs them for `duration_ms`.

    Any process may write it, unfenced. It counts from the record's LogAppendTime, for at most
    READ_LEASE_MAX_MS. The last record of a lease's id wins, so taking it again renews it. It blocks
    only expiry and deletions, of data that is not deleted yet. A lease on a whole topic is one on
    each of its partitions. `holder` describes the job for people.
    """

    event_id: UUID
    lease_id: UUID
    topic_id_partition: TopicIdPartition
    offsets: OffsetRange
    duration_ms: int
    holder: str

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"a read lease of no offsets: {self.offsets}")
        if not 0 < self.duration_ms <= READ_LEASE_MAX_MS:
            raise ValueError(f"a read lease of {self.duration_ms} ms")


class GapReason(Enum):
    """Why records are neither stored nor on the broker; the value is the reason's number.

    Records of SHED and EXTERNAL_START were never stored. For ACCEPTED_LOSS, an operator gave up a
    segment whose objects are damaged.
    """

    SHED = 1
    EXTERNAL_START = 2
    ACCEPTED_LOSS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGap:
    """A range of offsets; some of them are neither stored nor on the broker.

    Readers read those that are stored and skip the others, as in compacted logs. `unknown_fields`
    are a newer version's additional fields, in protobuf.
    """

    offsets: OffsetRange
    reason: GapReason
    recorded_ms: int
    unknown_fields: bytes = b""

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"a gap of no offsets: {self.offsets}")

    def until(self, end_offset: int) -> RecordedGap:
        """Return the part below an offset, which must be inside the gap."""
        return replace(self, offsets=replace(self.offsets, end_offset=end_offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class GapsRecorded:
    """All known gaps of a partition above its log start, ascending, without overlaps.

    It is published before an action of `rlm` makes a gap. The owner's newest record wins.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    gaps: tuple[RecordedGap, ...]

    def __post_init__(self) -> None:
        if any(a.offsets.end_offset > b.offsets.start_offset for a, b in pairwise(self.gaps)):
            raise ValueError(f"gaps that overlap: {self.gaps}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LossAccepted:
    """An operator accepts what a partition lost, so that its manager can continue.

    This covers records of leader epochs up to `leader_epoch` that an election cut off (-1: none).
    It also accepts `local_start_offset` as the local start although `rlm` did not move it. Any
    process may write it, unfenced: both values are maxima. Not tombstoned while the partition
    exists.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    leader_epoch: int
    local_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequested:
    """Someone wants all rolled segments below `offset` copied now, regardless of their age.

    Any process may write it, unfenced: requests form a maximum.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    offset: int


class PausableTask(Enum):
    """A task of a topic that an operator may pause."""

    COPY = 1
    TRIM = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPaused:
    """The tasks of one topic id that are paused now; the last record wins.

    `unknown_fields` are a newer version's additional fields, in protobuf.
    """

    event_id: UUID
    topic: str
    topic_id: UUID
    tasks: frozenset[PausableTask]
    unknown_fields: bytes = b""


class OutagePolicy(Enum):
    """What to do when the store is unavailable and the broker's disk fills."""

    HOLD = 1
    SHED_OLDEST = 2


class PolicyState(Enum):
    """The state of a topic's tiering. Trims need ACTIVE; copies need ACTIVE or DISABLING."""

    ENABLING = 1
    ACTIVE = 2
    DISABLING = 3
    DISABLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalConfig:
    """A topic config as it was before tiering; `value` None: the topic had no override."""

    name: str
    value: str | None


class CopyLagSince(Enum):
    """The start of a copy lag in time."""

    NEWEST_RECORD = 1  # the segment's newest record (KIP-1241)
    ROLL = 2  # when the broker rolled the segment (PIP-17's offloadTimeInMinutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicy:
    """How one topic is tiered; -1 is unlimited, and local retention -2 is "as total" (KIP-405).

    Copy lags are KIP-1241's: 0 copies at once, -1 is "as local retention". The local deletion lag
    (PIP-17) is how long stored data stays local; -1 is each manager's setting. `unknown_fields` are
    a newer version's additional fields, in protobuf.
    """

    topic: str
    topic_id: UUID
    state: PolicyState
    retention_ms: int
    retention_bytes: int
    local_retention_ms: int = AS_TOTAL_RETENTION
    local_retention_bytes: int = AS_TOTAL_RETENTION
    originals: tuple[OriginalConfig, ...] = ()
    delete_remote: bool = False
    copy_lag_ms: int = 0
    copy_lag_bytes: int = 0
    outage_policy: OutagePolicy = OutagePolicy.HOLD
    copy_lag_since: CopyLagSince = CopyLagSince.NEWEST_RECORD
    local_deletion_lag_ms: int = AS_MANAGERS_SETTING
    unknown_fields: bytes = b""

    @property
    def effective_local_retention_ms(self) -> int:
        local = self.local_retention_ms
        return self.retention_ms if local == AS_TOTAL_RETENTION else local

    @property
    def effective_local_retention_bytes(self) -> int:
        local = self.local_retention_bytes
        return self.retention_bytes if local == AS_TOTAL_RETENTION else local

    @property
    def effective_copy_lag_ms(self) -> int:
        lag = self.copy_lag_ms
        return self.effective_local_retention_ms if lag == AS_LOCAL_RETENTION else lag

    @property
    def effective_copy_lag_bytes(self) -> int:
        lag = self.copy_lag_bytes
        return self.effective_local_retention_bytes if lag == AS_LOCAL_RETENTION else lag


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicyChanged:
    """The policy of one topic id; the last record wins."""

    event_id: UUID
    policy: TopicPolicy


# The fold takes these events unchanged; of a segment's event it reads only a part.
PlainEvent = (
    SegmentDeadLettered
    | LeadershipClaimed
    | LocalLogTrimmed
    | LogStartAdvanced
    | LogStartRequested
    | RemotePartitionDeleteMetadata
    | ReadLeaseTaken
    | GapsRecorded
    | OffloadRequested
    | LossAccepted
    | AnomalyReported
    | TopicPaused
    | TopicPolicyChanged
    | ProcessRegistered
    | ClusterSecretSet
)

Event = SegmentEvent | PlainEvent
