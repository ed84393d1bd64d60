"""What the metadata says of one partition as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from rlmm.events.anomaly import Anomaly
from rlmm.events.values import RecordedGap, RemotePartitionDeleteState
from rlmm.log_starts import LogStart
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import Writer
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLease:
    """Somebody reads what is stored of `offsets`: nothing of it is deleted before `expires_ms`.

    That is by the brokers' clock. One that has expired stays known until it is cleared away.
    """

    lease_id: UUID
    offsets: OffsetRange
    expires_ms: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """What the metadata says of one partition as a whole.

    `owner` made the newest claim of the highest epoch. `lineage` is the newest claim's or trim's.
    `log_starts` are the owners' and `log_start_requests` the clients', as rlmm/log_starts.py keeps
    them, and so are `trims`: up to where the local log was, or is about to be, trimmed by us. How
    far they reach in this lineage `log_start_offset` and its like say. `read_leases` ascend by id.
    `recorded_gaps` ascend, `gaps_epoch` is the leader epoch that recorded them, and
    `gaps` is what counts of them.
    `accepted_loss_epoch` and `accepted_start_offset` are what an operator has accepted as
    lost (LossAccepted). `offload_requested_offset`: segments wholly before are to be stored now.
    `anomalies` are reports of damaged objects, ascending by id; one of a segment that is not
    finished any more says nothing.
    `deletion`: how far deleting all that is stored has come; None if it is not to be deleted. Once
    that has finished nothing else is known of the partition.
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
        """Nothing below is readable; None until a log start was recorded."""
        return self._furthest(self.log_starts)

    @property
    def log_start_requested_offset(self) -> int | None:
        """A client wants the log to start there; None once it does."""
        requested = self._furthest(self.log_start_requests)
        start = self.log_start_offset
        is_met = requested is not None and start is not None and requested <= start
        return None if is_met else requested

    @property
    def trimmed_offset(self) -> int | None:
        """The local log begins there, or is about to, if nobody else moves it; None: never cut."""
        return self._furthest(self.trims)

    def has_covered(self, request: LogStart) -> bool:
        """Whether what is known already says as much as a client's `request` would."""
        return any(each.covers(request) for each in (*self.log_starts, *self.log_start_requests))

    @property
    def gaps(self) -> tuple[RecordedGap, ...]:
        """What of them lies in the log as it was when they were recorded, above the log start.

        What a later leader has written where an unclean election cut that log off is no gap.
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
        """Nothing below is readable, by the log start or by a client's request of one."""
        starts = (self.log_start_offset, self.log_start_requested_offset)
        return max((start for start in starts if start is not None), default=None)

    def active_leases(self, broker_time_ms: int) -> tuple[ReadLease, ...]:
        """The leases that have not expired at `broker_time_ms`."""
        return tuple(lease for lease in self.read_leases if lease.expires_ms > broker_time_ms)

    def _furthest(self, starts: tuple[LogStart, ...]) -> int | None:
        return max((start.within(self.lineage) for start in starts), default=None)
