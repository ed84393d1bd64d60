"""Represents a led partition at one moment, with all facts that decisions may use. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from rlm.facts.local_log import LocalLog
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.losses import CutOff, cut_off, moved_by_others
from rlmm.events.pause import PausableTask
from rlmm.events.policy import TopicPolicy
from rlmm.events.registration import ProcessRegistered
from rlmm.positions import MetadataPosition
from rlmm.spi import NewerRecord, SegmentRecord
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.segment.coverage import StoredRange, covered_end, stored_end, stored_ranges
from rsm.segment.epochs import Lineage, StitchedLineage, stitch
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer
from rsm.segment.offload_settings import OffloadMode, OffloadSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLimits:
    """Represents the settings that decisions depend on.

    If `idle_copy_ms` is -1, the active segment is never copied. If `can_shed` is false, nothing is
    shed, even if a topic's policy allows it. `offload` applies to topics without their own offload
    settings. If `merges_streams` is true, small segments of streamed partitions are merged.
    """

    local_trim_margin_bytes: int = 0
    local_trim_min_age_ms: int = 900_000
    local_trim_deletion_lag_ms: int = 0
    orphan_grace_ms: int = 86_400_000
    unreferenced_grace_ms: int = 604_800_000
    expiry_max_percent: int = 100
    should_hold_after_loss: bool = False
    idle_copy_ms: int = -1
    can_shed: bool = True
    offload: OffloadSettings = field(default_factory=OffloadSettings)
    merges_streams: bool = False


# For retention, this process's clock may be at most this far ahead of the brokers' known time.
_AHEAD_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Represents the time by this process's clock, for timestamps, and by the brokers' clock."""

    wall_ms: int
    broker_ms: int

    @property
    def retention_ms(self) -> int:
        """Return this process's time, but at most 10 minutes ahead of the brokers'."""
        return min(self.wall_ms, self.broker_ms + _AHEAD_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailure:
    """Represents why the last copy attempts failed.

    `is_corrupt`: the bytes do not match their format or checksum. `cause` is the error without the
    identity of the segment, so that equal errors of many partitions count together. `is_final`:
    every attempt would fail, so no more are made. `is_unexpected`: a bug, or an error of the host;
    it says nothing about the store.
    """

    error: str
    cause: str
    is_corrupt: bool
    attempts: int
    is_final: bool = False
    is_unexpected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Represents what this manager's own check of a partition's objects has found.

    `damaged` segments have a missing or corrupt object. `whole` segments overlap damaged segments,
    and all of their objects match their records.
    """

    damaged: frozenset[UUID] = frozenset()
    whole: frozenset[UUID] = frozenset()


OUTAGE_ATTEMPTS = 5
"""This number of consecutive failed copy attempts of a partition is an outage."""


# No slots: cached properties keep derived values in the instance.
@dataclass(frozen=True, kw_only=True)
class PartitionView:
    """Represents one led partition, as the broker, its disk and the metadata show it.

    `in_flight` are the segment ids that this process is copying. `untierable` is the rule that
    forbids copying and trimming with the topic's present settings; None if none does. `gateways`
    are the live gateways. Before a stored segment leaves the broker, they must have applied its
    record and the policy at `policy_position`. Without that policy they do not read the store.
    `newer` is a record of this partition that a newer version must fold; None if there is none.
    `copy_failure` is None unless this process's last copy failed, or its last stream if the topic
    is streamed. `paused` is what an operator paused for the topic. `is_past_retention`: the leader
    has no committed record within the total retention. `deletion_requested` are streamed segments
    that an operator wants deleted. `unsupported` are stored segments that merges of this process
    could not read. `spent_streams` are unfinished streams whose parts are no longer reused; None if
    the store cannot reuse any.
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
    copy_failure: AttemptFailure | None = None
    paused: frozenset[PausableTask] = frozenset()
    is_store_reachable: bool = True
    is_past_retention: bool = False
    damage: Damage = field(default_factory=Damage)
    deletion_requested: frozenset[UUID] = frozenset()
    unsupported: frozenset[UUID] = frozenset()
    spent_streams: frozenset[UUID] | None = None

    @cached_property
    def _stitched(self) -> StitchedLineage:
        return stitch(self.state.lineage, self.local.checkpoint)

    @property
    def local_start_offset(self) -> int:
        """Return where the broker's local log begins."""
        return self.offsets.log_start_offset

    @property
    def lineage(self) -> Lineage:
        """Return the stored lineage joined with the broker's checkpoint."""
        return self._stitched.lineage

    @property
    def conflict_offset(self) -> int | None:
        """Return where stored lineage and checkpoint contradict each other; None if they agree."""
        return self._stitched.conflict_offset

    @property
    def epochs_known_from_offset(self) -> int | None:
        """Return where the first leader epoch starts if the log starts below it; else None.

        Records below that offset are older than leader epochs (KIP-101). Nothing could show later
        whether a stored segment with such records belongs to this log.
        """
        first = next(iter(self.lineage.entries), None)
        if first is None or first.start_offset <= self.local_start_offset:
            return None
        return first.start_offset

    @cached_property
    def stored(self) -> tuple[StoredRange, ...]:
        """Return the readable parts of finished segments, ascending."""
        return stored_ranges(self.lineage, (record.metadata for record in self.segments))

    @cached_property
    def covered_end_offset(self) -> int:
        """Return the end of the offsets that are stored without a hole from the local start."""
        return covered_end(self.stored, self.local_start_offset)

    @property
    def active_unstored_bytes(self) -> int:
        """Return a lower bound for the size of the unstored part of the active segment.

        Subtracts the whole size of a streamed segment that begins before the active one, so that no
        byte counts twice. Returns 0 if the log start is in the active segment: the file still
        contains the expired bytes, and their size is unknown. If these counted as unstored,
        retention would expire the records above them.
        """
        base_offset = self.local.active_base_offset
        if (self.state.log_start_offset or 0) > base_offset:
            return 0
        stored = (p.metadata for p in self.stored if p.offsets.end_offset > base_offset)
        stored_bytes = sum(metadata.segment_size_bytes for metadata in stored)
        return max(0, self.local.active_size_bytes - stored_bytes)

    @property
    def is_owned(self) -> bool:
        return self.state.owner == self.writer

    @cached_property
    def read_leases(self) -> tuple[ReadLease, ...]:
        """Return the leases that have not expired, by the brokers' clock."""
        return self.state.active_leases(self.moment.broker_ms)

    @property
    def has_store_outage(self) -> bool:
        """Return whether the store accepts no rolled segments now, as far as this process knows.

        A few failed attempts are no outage yet: they are retried. An unexpected error is never an
        outage.
        """
        if not self.is_store_reachable:
            return True
        failure = self.copy_failure
        return (
            failure is not None
            and failure.attempts >= OUTAGE_ATTEMPTS
            and not failure.is_unexpected
        )

    @property
    def offload(self) -> OffloadSettings:
        """Return how the partition is offloaded."""
        return self.policy.effective_offload(self.limits.offload)

    @property
    def is_streamed(self) -> bool:
        """Return whether the log is offloaded as it grows, and not by rolled segments."""
        return self.offload.mode is OffloadMode.STREAM

    @property
    def copy_end_offset(self) -> int:
        """Return the end of committed records: later ones may still be truncated or aborted."""
        return self.offsets.committed_end_offset

    @property
    def is_diverged(self) -> bool:
        """Return whether the broker's log has lost stored records.

        It has lost some if the high watermark is below the end of the stored records. With
        `should_hold_after_loss`, the log has also diverged if an election cut off stored records
        and nobody accepted the loss.
        """
        end = stored_end(self.stored)
        ends_below = end is not None and self.offsets.high_watermark < end
        return ends_below or (self.limits.should_hold_after_loss and self.cut_off is not None)

    @cached_property
    def cut_off(self) -> CutOff | None:
        """Return the `CutOff` above the log start that is not accepted; None if there is none."""
        segments = (record.metadata for record in self.segments)
        return cut_off(self.lineage, self.stored, segments, self.state)

    @property
    def moved_from_offset(self) -> int | None:
        """Return the last local start that `rlm` set; None if there is no external start."""
        return moved_by_others(self.state, self.local_start_offset)

    @property
    def has_external_start(self) -> bool:
        """Return whether the local log has an external start that nobody has accepted."""
        moved = self.moved_from_offset is not None
        return moved and self.local_start_offset > self.state.accepted_start_offset
