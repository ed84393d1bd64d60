"""The events of the metadata topic, as values. What each one means is rlmm.fold.rules' matter.

Every event has an id of its own, and a record's key ends with it wherever acceptance depends on
order (segments, claims, trims, log starts, gaps, requests): no record ever replaces another, so a
refused one can not push out an accepted one when the topic is compacted. What was superseded is
removed by tombstones of its owner. Kinds where the last writer wins (policies, pauses,
registrations, read leases) have one key per subject and are compacted by Kafka alone.
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
    """A segment's next step. The record carries the whole metadata.

    `expected_state`: for DELETE_SEGMENT_STARTED, the state it was decided on (None: nothing known).
    `copy_deadline_ms`: for COPY_SEGMENT_FINISHED, the LogAppendTime after which it comes too late;
    for COPY_SEGMENT_STARTED, 0. 0 means none (a catalogue rebuilt from the store).
    `copy_timeout_ms`: for COPY_SEGMENT_STARTED, how long this attempt may take.
    """

    event_id: UUID
    metadata: RemoteLogSegmentMetadata
    expected_state: SegmentState | None = None
    copy_timeout_ms: int = 0
    copy_deadline_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDeadLettered:
    """A segment's deletion failed too often and went to the dead-letter topic.

    The segment stays in DELETE_SEGMENT_STARTED; from here on only a repair job or an operator
    tries again.
    """

    event_id: UUID
    segment_id: RemoteLogSegmentId
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipClaimed:
    """A leader took a partition. Carries the whole lineage. Never tombstoned."""

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    lineage: Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLogTrimmed:
    """The leader is about to trim the local log up to `offset`; published before it does."""

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    offset: int
    lineage: Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartAdvanced:
    """Nothing below `offset` is readable any more; published before anything is deleted."""

    event_id: UUID
    topic_id_partition: TopicIdPartition
    writer: Writer
    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartRequested:
    """A client has deleted the records below `offset`, and the broker has accepted that.

    Written by any gateway, unfenced: requests are a maximum, never above the high watermark. The
    leader makes it the log start. `leader_epoch`: of the broker that accepted it, -1 for that of
    whoever owns the partition by then; where a later epoch begins below, nobody asked for more.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    offset: int
    leader_epoch: int = -1


class RemotePartitionDeleteState(Enum):
    """KIP-405's states of deleting all that is stored of a partition; the value is their order."""

    DELETE_PARTITION_MARKED = 1
    DELETE_PARTITION_STARTED = 2
    DELETE_PARTITION_FINISHED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadata:
    """The next step of deleting all that is stored of a topic-id-partition (KIP-405).

    Written by anyone, for nobody leads a deleted topic; each step is accepted once, in order. Once
    it is marked no copy begins. FINISHED may be written only when nothing is stored any more.
    Never tombstoned.
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
    """Somebody reads the objects behind `offsets` and asks that they stay for `duration_ms`.

    Written by anyone, unfenced. It counts from the broker's time of the record, READ_LEASE_MAX_MS
    at most; the last record of a lease's id holds, so taking it again renews it. It holds back
    expiry and deletions, nothing else, and only what is not deleted yet. One on a whole topic is
    one on each of its partitions. `holder` is for people: who reads.
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
    """Why records are neither stored nor on the broker; the value is the record's number.

    SHED and EXTERNAL_START: they were never stored. ACCEPTED_LOSS: their segment's objects were
    damaged, and an operator gave them up.
    """

    SHED = 1
    EXTERNAL_START = 2
    ACCEPTED_LOSS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGap:
    """Offsets of which some are not stored, and are not on the broker any more.

    What is stored of them all the same is read; the rest is stepped over, as what compaction took.
    `unknown_fields` are what a newer version wrote beside, in protobuf.
    """

    offsets: OffsetRange
    reason: GapReason
    recorded_ms: int
    unknown_fields: bytes = b""

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"a gap of no offsets: {self.offsets}")

    def until(self, end_offset: int) -> RecordedGap:
        """What of it lies below an offset, which is in it."""
        return replace(self, offsets=replace(self.offsets, end_offset=end_offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class GapsRecorded:
    """All gaps that are known of a partition above its log start, ascending, without overlaps.

    Published before what makes a gap is done, if we do it. The owner's newest one holds.
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
    """An operator has seen what a partition lost, and things may go on as they are.

    What leader epochs up to `leader_epoch` wrote and an election cut off (-1: nothing), and that
    the broker's log begins at `local_start_offset`, though nobody of us moved it there. Written by
    anyone, unfenced: both are maxima. Never tombstoned while the partition lives.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    leader_epoch: int
    local_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequested:
    """Somebody wants all rolled segments below `offset` stored now, however young they are.

    Written by anyone, unfenced: requests are a maximum.
    """

    event_id: UUID
    topic_id_partition: TopicIdPartition
    offset: int


class PausableTask(Enum):
    """What an operator may pause of a topic."""

    COPY = 1
    TRIM = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPaused:
    """All that is paused of one topic id now; the last one written holds.

    `unknown_fields` are what a newer version wrote beside, in protobuf.
    """

    event_id: UUID
    topic: str
    topic_id: UUID
    tasks: frozenset[PausableTask]
    unknown_fields: bytes = b""


class OutagePolicy(Enum):
    """What to do when the store is away and the broker's disk fills."""

    HOLD = 1
    SHED_OLDEST = 2


class PolicyState(Enum):
    """The life of a topic's tiering. No trim but in ACTIVE; copies in ACTIVE and DISABLING."""

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
    """What a copy lag in time counts from."""

    NEWEST_RECORD = 1  # the segment's newest record (KIP-1241)
    ROLL = 2  # when the broker rolled the segment (PIP-17's offloadTimeInMinutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicy:
    """How one topic is tiered. -1 is unlimited; local retention -2 is "as total" (KIP-405).

    Copy lags are KIP-1241's: 0 copies at once, -1 is "as local retention". The local deletion lag
    is PIP-17's, how long what is stored stays local; -1 is what each manager is configured with.

    `unknown_fields` are what a newer version wrote beside, in protobuf.
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
    """The policy of one topic id; the last one written holds."""

    event_id: UUID
    policy: TopicPolicy


# The fold takes these as they are; of an event of a segment it reads less.
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
