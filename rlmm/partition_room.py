"""Limits the read leases and anomalies that are recorded of one partition. Pure."""

from __future__ import annotations

from rlmm.events.anomaly import ANOMALIES_MAX_COUNT, AnomalyKind, AnomalyReported
from rlmm.events.values import READ_LEASES_MAX_COUNT, ReadLeaseTaken
from rlmm.partition_state import PartitionState
from rsm.segment.errors import RetriableError


class NoAnomalyRoomError(RetriableError):
    """The partition has its maximum of recorded anomalies; other partitions are unaffected."""


def require_room(
    event: ReadLeaseTaken | AnomalyReported, state: PartitionState, broker_time_ms: int
) -> None:
    """Raise if the partition has reached its limit; a renewal is always accepted.

    NoAnomalyRoomError for an anomaly, RetriableError for a read lease.
    """
    if isinstance(event, AnomalyReported):
        is_accepted = event.anomaly.kind is AnomalyKind.LOSS_ACCEPTED
        others = [
            known
            for known in state.anomalies
            if known.id != event.anomaly.id
            and (known.kind is AnomalyKind.LOSS_ACCEPTED) == is_accepted
        ]
        if len(others) >= ANOMALIES_MAX_COUNT:
            partition = event.topic_id_partition
            raise NoAnomalyRoomError(
                "cannot record another anomaly: the partition has as many as it may",
                partition=partition,
                limit=ANOMALIES_MAX_COUNT,
            )
        return
    active = state.active_leases(broker_time_ms)
    others_active = [lease for lease in active if lease.lease_id != event.lease_id]
    if len(others_active) >= READ_LEASES_MAX_COUNT:
        raise RetriableError("too many read leases", partition=event.topic_id_partition)
