"""The metadata of one partition as a whole."""

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
    """KIP-405's states of deleting all stored data of a partition, in the order of their values."""

    DELETE_PARTITION_MARKED = 1
    DELETE_PARTITION_STARTED = 2
    DELETE_PARTITION_FINISHED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLease:
    """A job reads the stored data of `offsets`; none of it is deleted before `expires_ms`.

    The brokers' clock decides. An expired lease stays known until its tombstone is applied.
    """

    lease_id: UUID
    offsets: OffsetRange
    expires_ms: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The metadata of one partition as a whole.

    `owner` made the newest claim of the highest epoch. `lineage` comes from the newest claim or
    trim. `log_starts` are the owners' decisions, `log_start_requests` the clients' requests, and
    `trims` are the offsets up to which the owners trimmed the local log, or are about to. All three
    are as in rlmm/state/log_starts.py; properties such as `log_start_offset` apply them to this
    lineage. `read_leases` and `anomalies` ascend by id. An anomaly of an unfinished segment has no
    effect. `recorded_gaps` ascend, and `gaps_epoch` is the leader epoch that recorded them; `gaps`
    are those that still apply. `accepted_loss_epoch` and `accepted_start_offset` are an operator's
    LossAccepted. `offload_requested_offset`: copy segments that end at or below it now. `deletion`
    is the progress of deleting all stored data; None if none is planned. Once it has finished, the
    other fields are empty.
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
        """The first readable offset; None until a log start is recorded."""
        return self._furthest(self.log_starts)

    @property
    def log_start_requested_offset(self) -> int | None:
        """The log start that clients request; None without a request, or if it is already met."""
        requested = self._furthest(self.log_start_requests)
        start = self.log_start_offset
        is_met = requested is not None and start is not None and requested <= start
        return None if is_met else requested

    @property
    def trimmed_offset(self) -> int | None:
        """The local start after the owners' trims, unless others move it; None: no trim."""
        return self._furthest(self.trims)

    def has_covered(self, request: LogStart) -> bool:
        """Return whether a known log start or request already covers a client's `request`."""
        return any(each.covers(request) for each in (*self.log_starts, *self.log_start_requests))

    @property
    def gaps(self) -> tuple[RecordedGap, ...]:
        """The recorded gaps above the log start and within the log that they were recorded for.

        After an unclean election cut off that log, the records of a later leader are no gap.
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
        """The first readable offset, by the log start or by a client's request."""
        starts = (self.log_start_offset, self.log_start_requested_offset)
        return max((start for start in starts if start is not None), default=None)

    def active_leases(self, broker_time_ms: int) -> tuple[ReadLease, ...]:
        """Return the leases that have not expired at `broker_time_ms`."""
        return tuple(lease for lease in self.read_leases if lease.expires_ms > broker_time_ms)

    def _furthest(self, starts: tuple[LogStart, ...]) -> int | None:
        return max((start.within(self.lineage) for start in starts), default=None)
