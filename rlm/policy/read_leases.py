"""Evaluates read leases, which keep stored segments until the lease ends. Pure.

Leases end by the brokers' clock. This process knows that clock with a delay, so no lease ends
too early. A lease blocks expiry and every deletion of stored segments. It does not block a client's
DeleteRecords, because the broker has already carried out the request. It does not block the
deletion of unfinished copies, because nobody can read them.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlm.policy.blocked import Blocked
from rlmm.state.partition_state import ReadLease
from rsm.segment.ranges import OffsetRange


def log_start_within_leases(
    leases: Iterable[ReadLease], current: int, offset: int
) -> tuple[int, ReadLease | None]:
    """Return how far retention may move the log start from `current` toward `offset`.

    Also returns the lease that limits it; None if none does.
    """
    way = OffsetRange(start_offset=current, end_offset=max(current, offset))
    first = lease_on(leases, way)
    return (offset, None) if first is None else (max(current, first.offsets.start_offset), first)


def lease_on(leases: Iterable[ReadLease], offsets: OffsetRange) -> ReadLease | None:
    """Return the overlapping lease with the lowest start offset; None if no lease overlaps."""
    overlapping = (lease for lease in leases if lease.offsets.overlaps(offsets))
    return min(overlapping, key=lambda lease: lease.offsets, default=None)


def blocked_by_lease(lease: ReadLease) -> Blocked:
    """Return a lease as the reason that blocks an action."""
    return Blocked(
        reason="read_lease",
        values={
            "lease_id": str(lease.lease_id),
            "holder": lease.holder,
            "start_offset": lease.offsets.start_offset,
            "end_offset": lease.offsets.end_offset,
            "expires_ms": lease.expires_ms,
        },
    )
