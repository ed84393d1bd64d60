"""Represents the metadata of one partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from rlmm.state.anomalies import Anomaly
from rlmm.state.gaps import RecordedGap
from rlmm.state.log_starts import LogStart
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import Writer
from rsm.segment.ranges import OffsetRange


class RemotePartitionDeleteState(Enum):
    """KIP-405's states of the deletion of a partition's stored data, in the order of values."""

    DELETE_PARTITION_MARKED = 1
    DELETE_PARTITION_STARTED = 2
    DELETE_PARTITION_FINISHED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLease:
    """A job's right to read the stored data of `offsets`, which is not deleted until `expires_ms`.

    The brokers' clock decides when it expires. An expired lease stays in the state until its
    tombstone is applied.
    """

    lease_id: UUID
    offsets: OffsetRange
    expires_ms: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The metadata of one partition, without its segments.

    `owner` made the newest claim of the highest epoch. `lineage` comes from the newest claim or
    trim. `log_starts` are the owners' decisions, and `log_start_requests` the clients' requests.
    `trims` are the offsets up to which the owners trimmed the local log, or are about to.
    Properties such as `log_start_offset` apply these three to `lineage`
    (rlmm/state/log_starts.py).
    `read_leases` and `anomalies` ascend by id. An anomaly of an unfinished segment has no effect.
    `recorded_gaps` ascend, and `gaps_epoch` is the leader epoch in which they were recorded.
    `accepted_loss_epoch` and `accepted_start_offset` are the maxima of operators' LossAccepted
    events. The owner copies the segments below `offload_requested_offset` without delay.
    `deletion` is the state of the deletion of all stored data, None if no deletion is planned. Once
    it has finished, the other fields are empty.
    """

    owner: Writer | None = None
    lineage: Lineage = field(default_factory=Lineage)
    log_starts: tuple[LogStart, ...] = ()
    log_start_requests: tuple[LogStart, ...] = ()
    trims: tuple[LogStart, ...] = ()
    read_leases: tuple[ReadLease, ...] = ()
    recorded_gaps: tuple[RecordedGap, ...] = ()
    gaps_epoch: int = -1
    offload_requested_offset: int | None = None
    accepted_loss_epoch: int = -1
    accepted_start_offset: int = 0
    anomalies: tuple[Anomaly, ...] = ()
    deletion: RemotePartitionDeleteState | None = None

    @property
    def log_start_offset(self) -> int | None:
        """Return the log start that the owners decided; None until one is recorded."""
        return self._furthest(self.log_starts)

    @property
    def log_start_requested_offset(self) -> int | None:
        """Return the log start that clients request; None if there is none or it is met."""
        requested = self._furthest(self.log_start_requests)
        start = self.log_start_offset
        is_met = requested is not None and start is not None and requested <= start
        return None if is_met else requested

    @property
    def trimmed_offset(self) -> int | None:
        """Return the local start that the owners' trims alone give; None if there is no trim."""
        return self._furthest(self.trims)

    def has_covered(self, request: LogStart) -> bool:
        """Return whether a known log start or request already covers a client's `request`."""
        return any(each.covers(request) for each in (*self.log_starts, *self.log_start_requests))

    @property
    def gaps(self) -> tuple[RecordedGap, ...]:
        """Return the parts of the recorded gaps that still apply.

        Omits gaps that end at or below the log start. If an unclean election truncated the log in
        which they were recorded, they end where a later leader's records begin.
        """
        if not self.recorded_gaps:
            return ()
        begin, end = self.log_start_offset or 0, self.recorded_gaps[-1].offsets.end_offset
        end = LogStart(end, self.gaps_epoch).within(self.lineage)
        return tuple(
            gap if gap.offsets.end_offset <= end else gap.until(end)
            for gap in self.recorded_gaps
            if gap.offsets.end_offset > begin and gap.offsets.start_offset < end
        )

    @property
    def first_readable_offset(self) -> int | None:
        """Return the log start, or a client's higher request; None if there is neither."""
        starts = (self.log_start_offset, self.log_start_requested_offset)
        return max((start for start in starts if start is not None), default=None)

    def active_leases(self, broker_time_ms: int) -> tuple[ReadLease, ...]:
        """Return the leases that have not expired at `broker_time_ms`."""
        return tuple(lease for lease in self.read_leases if lease.expires_ms > broker_time_ms)

    def _furthest(self, starts: tuple[LogStart, ...]) -> int | None:
        return max((start.within(self.lineage) for start in starts), default=None)
