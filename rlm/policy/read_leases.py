"""Read leases: what somebody reads from the store stays there until the lease expires.

By the brokers' clock, as far as it is known here: never too early. A lease holds back expiry and
the deletion of what is stored, whatever asks for it; not a client's own deletion of records, which
brokers have carried out already, nor copies that did not finish, which nobody can read.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlm.policy.blocked import Blocked
from rlm.policy.view import PartitionView
from rlmm.partition_state import ReadLease
from rsm.segment.ranges import OffsetRange


def log_start_within_leases(view: PartitionView, offset: int) -> tuple[int, ReadLease | None]:
    """How far the log start may go on its way to `offset`, and the lease that ends it before."""
    current = view.state.log_start_offset or 0
    way = OffsetRange(start_offset=current, end_offset=max(current, offset))
    first = lease_on(view.read_leases, way)
    return (offset, None) if first is None else (max(current, first.offsets.start_offset), first)


def lease_on(leases: Iterable[ReadLease], offsets: OffsetRange) -> ReadLease | None:
    """The lease on any of these offsets that begins first."""
    overlapping = (lease for lease in leases if lease.offsets.overlaps(offsets))
    return min(overlapping, key=lambda lease: lease.offsets, default=None)


def blocked_by_lease(lease: ReadLease) -> Blocked:
    """A lease as the reason why something stays."""
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
