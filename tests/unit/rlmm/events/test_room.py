"""How many anomalies and read leases of one partition may be on record."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.events.anomaly import (
    ANOMALIES_MAX_COUNT,
    FOLDED_ANOMALIES_MAX_COUNT,
    AnomalyFamily,
    NoAnomalyRoomError,
)
from rlmm.events.read_lease import READ_LEASES_MAX_COUNT, ReadLeaseFamily
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.segment.errors import RetriableError
from rsm.segment.ranges import OffsetRange
from tests import metadata_builder as build

FULL = PartitionState(
    anomalies=tuple(
        sorted(
            (build.anomaly(number) for number in range(1, ANOMALIES_MAX_COUNT + 1)),
            key=lambda each: each.id,
        )
    )
)
EXPIRES_MS = 1_000
FULL_OF_LEASES = PartitionState(
    read_leases=tuple(
        ReadLease(
            lease_id=UUID(int=number),
            offsets=OffsetRange(start_offset=0, end_offset=100),
            expires_ms=EXPIRES_MS,
            holder="an audit",
        )
        for number in range(1, READ_LEASES_MAX_COUNT + 1)
    )
)


def test_anomalies_when_counted_then_a_fold_keeps_four_times_what_writers_write() -> None:
    """All processes must fold in the same way, whatever their version."""
    assert (ANOMALIES_MAX_COUNT, FOLDED_ANOMALIES_MAX_COUNT) == (256, 1_024)


def test_anomaly_when_the_partition_has_as_many_as_it_may_then_refused() -> None:
    event = build.anomaly_reported(build.anomaly(ANOMALIES_MAX_COUNT + 1))

    with pytest.raises(NoAnomalyRoomError, match="cannot record another anomaly"):
        AnomalyFamily().require_room(event, lambda _: FULL, 0)


def test_anomaly_when_it_is_the_last_that_may_be_recorded_then_has_room() -> None:
    event = build.anomaly_reported(build.anomaly(ANOMALIES_MAX_COUNT + 1))
    nearly_full = replace(FULL, anomalies=FULL.anomalies[1:])

    AnomalyFamily().require_room(event, lambda _: nearly_full, 0)


def test_anomaly_when_it_is_on_record_then_its_update_has_room() -> None:
    event = build.anomaly_reported(build.anomaly(1, attempts=9))

    AnomalyFamily().require_room(event, lambda _: FULL, 0)


def test_accepted_loss_when_the_partition_has_as_many_anomalies_then_has_room() -> None:
    """An operator can accept the loss of the objects that fill the record."""
    event = build.anomaly_reported(build.anomaly(1, kind=AnomalyKind.LOSS_ACCEPTED))

    AnomalyFamily().require_room(event, lambda _: FULL, 0)


def test_lease_when_the_partition_has_as_many_as_it_may_then_refused() -> None:
    event = build.read_lease(READ_LEASES_MAX_COUNT + 1)

    with pytest.raises(RetriableError, match="cannot take a read lease"):
        ReadLeaseFamily().require_room(event, lambda _: FULL_OF_LEASES, EXPIRES_MS - 1)


def test_lease_when_it_is_the_last_that_may_be_taken_then_has_room() -> None:
    event = build.read_lease(READ_LEASES_MAX_COUNT + 1)
    nearly_full = replace(FULL_OF_LEASES, read_leases=FULL_OF_LEASES.read_leases[1:])

    ReadLeaseFamily().require_room(event, lambda _: nearly_full, EXPIRES_MS - 1)


def test_lease_when_it_is_on_record_then_its_renewal_has_room() -> None:
    ReadLeaseFamily().require_room(build.read_lease(1), lambda _: FULL_OF_LEASES, EXPIRES_MS - 1)


def test_lease_when_those_on_record_have_expired_then_has_room() -> None:
    event = build.read_lease(READ_LEASES_MAX_COUNT + 1)

    ReadLeaseFamily().require_room(event, lambda _: FULL_OF_LEASES, EXPIRES_MS)
