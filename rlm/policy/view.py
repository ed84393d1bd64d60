"""A led partition as it is seen at one moment: all that a decision may depend on, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from rlm.broker.list_offsets import PartitionOffsets
from rlm.policy.losses import CutOff, cut_off, moved_by_others
from rlm.source.log_source import LocalLog
from rlmm.events.processes import ProcessRegistered
from rlmm.events.values import PausableTask, TopicPolicy
from rlmm.partition_state import PartitionState, ReadLease
from rlmm.spi import (
    MetadataPosition,
    NewerRecord,
    SegmentRecord,
)
from rsm.segment.coverage import StoredRange, covered_end, stored_end, stored_ranges
from rsm.segment.epochs import Lineage, StitchedLineage, stitch
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLimits:
    """The settings that decisions depend on; names as in the configuration.

    `idle_copy_ms` -1: what is not rolled is never copied.
    """

    local_trim_margin_bytes: int = 0
    local_trim_min_age_ms: int = 900_000
    local_trim_deletion_lag_ms: int = 0
    orphan_grace_ms: int = 86_400_000
    unreferenced_grace_ms: int = 604_800_000
    expiry_max_percent: int = 100
    holds_after_loss: bool = False
    idle_copy_ms: int = -1


# How far our clock may be ahead of what was last heard of the brokers' before it is not believed.
_AHEAD_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The two clocks of a decision: ours for record timestamps, the brokers' for deadlines."""

    wall_ms: int
    broker_ms: int

    @property
    def retention_ms(self) -> int:
        """What record timestamps are compared with: a clock that jumped ahead expires nothing."""
        return min(self.wall_ms, self.broker_ms + _AHEAD_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFailure:
    """What the last attempts to copy failed of. `corrupt`: bytes are not what they have to be.

    `cause` is the error without what it happened to, so that those of many partitions are counted
    together. `final`: another attempt would fail, too, and is not made.
    """

    error: str
    cause: str
    corrupt: bool
    attempts: int
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What this manager has found in the store by its own look at a partition's objects.

    `damaged` segments have a missing or corrupt object. `whole` ones overlap those, and all of
    their objects are as recorded.
    """

    damaged: frozenset[UUID] = frozenset()
    whole: frozenset[UUID] = frozenset()


OUTAGE_ATTEMPTS = 5
"""So many copies of a partition that failed in a row are an outage."""


# No slots: what is derived is computed once, on first use, and kept in the instance.
@dataclass(frozen=True, kw_only=True)
class PartitionView:
    """One led partition: what the broker, its disk and the metadata say of it, and what follows.

    `in_flight` are the segment ids that this process is copying right now; `untierable` is the rule
    that forbids copying and trimming the topic as its broker has it now, None if none does.
    `gateways` are the live ones: they must know of what is stored before it leaves the broker, and
    of the policy, which stands at `policy_position`, that makes them look there at all.
    `paused`: what an operator has paused of the topic. `is_past_retention`: the leader says that no
    committed record is younger than the total retention.
    `copy_failure` is None unless this process' last attempt to copy has failed.
    `newer` is a record about this partition that a newer version must fold, None if there is none.
    """

    topic_id_partition: TopicIdPartition
    policy: TopicPolicy
    writer: Writer
    state: PartitionState
    offsets: PartitionOffsets
    local: LocalLog
    segments: tuple[SegmentRecord, ...]
    in_flight: frozenset[UUID]
    moment: Moment
    limits: PolicyLimits
    untierable: str | None = None
    gateways: tuple[ProcessRegistered, ...] = ()
    policy_position: MetadataPosition | None = None
    newer: NewerRecord | None = None
    copy_failure: CopyFailure | None = None
    paused: frozenset[PausableTask] = frozenset()
    store_reachable: bool = True
    is_past_retention: bool = False
    damage: Damage = field(default_factory=Damage)

    @cached_property
    def _stitched(self) -> StitchedLineage:
        return stitch(self.state.lineage, self.local.checkpoint)

    @property
    def local_start_offset(self) -> int:
        """Where the broker's own log begins."""
        return self.offsets.log_start_offset

    @property
    def lineage(self) -> Lineage:
        """The stored lineage joined with the broker's checkpoint."""
        return self._stitched.lineage

    @property
    def conflict_offset(self) -> int | None:
        """Where the two contradict each other; None if they don't."""
        return self._stitched.conflict_offset

    @property
    def epochs_known_from_offset(self) -> int | None:
        """Where the first leader epoch begins if the log begins below; None if it does not.

        Below are messages older than leader epochs (KIP-101): no segment can answer for them.
        """
        first = next(iter(self.lineage.entries), None)
        if first is None or first.start_offset <= self.local_start_offset:
            return None
        return first.start_offset

    @cached_property
    def stored(self) -> tuple[StoredRange, ...]:
        """The readable parts of finished segments, ascending."""
        return stored_ranges(self.lineage, (record.metadata for record in self.segments))

    @cached_property
    def covered_end_offset(self) -> int:
        """The end of what is stored without a hole from the local start on."""
        return covered_end(self.stored, self.local_start_offset)

    @property
    def active_unstored_bytes(self) -> int:
        """The size of the file being written, without what is stored of it."""
        base_offset = self.local.active_base_offset
        stored = (p.metadata for p in self.stored if p.offsets.start_offset >= base_offset)
        stored_bytes = sum(metadata.segment_size_bytes for metadata in stored)
        return max(0, self.local.active_size_bytes - stored_bytes)

    @property
    def owned(self) -> bool:
        """Whether our own claim is the newest one that the metadata knows."""
        return self.state.owner == self.writer

    @cached_property
    def read_leases(self) -> tuple[ReadLease, ...]:
        """The leases that have not expired, by the brokers' clock."""
        return self.state.active_leases(self.moment.broker_ms)

    @property
    def store_takes_nothing(self) -> bool:
        """Whether what is rolled cannot be stored now, as far as this process knows.

        That some attempts failed is no outage yet: they are made again.
        """
        failure = self.copy_failure
        is_failing = failure is not None and failure.attempts >= OUTAGE_ATTEMPTS
        return not self.store_reachable or is_failing

    @property
    def copy_end_offset(self) -> int:
        """Nothing at or above may be copied: it may still be rolled back or aborted."""
        return min(self.offsets.high_watermark, self.offsets.last_stable_offset)

    @property
    def diverged(self) -> bool:
        """The broker's log has lost what is stored of it.

        It ends below that, or an election cut that off and nobody has accepted it.
        """
        end = stored_end(self.stored)
        ends_below = end is not None and self.offsets.high_watermark < end
        return ends_below or (self.limits.holds_after_loss and self.cut_off is not None)

    @cached_property
    def cut_off(self) -> CutOff | None:
        """What an election cut off of what is stored, unless an operator has accepted that."""
        segments = (record.metadata for record in self.segments)
        return cut_off(self.lineage, self.stored, segments, self.state)

    @property
    def moved_from_offset(self) -> int | None:
        """Where we moved the local start last, if somebody else has moved it on from there."""
        return moved_by_others(self.state, self.local_start_offset)

    @property
    def external_start(self) -> bool:
        """Somebody else moved the local start, and nobody has accepted that."""
        moved = self.moved_from_offset is not None
        return moved and self.local_start_offset > self.state.accepted_start_offset
