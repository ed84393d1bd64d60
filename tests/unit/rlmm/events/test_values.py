"""The valid values of events, and the special values of a policy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import Enum

import pytest

from rlmm.events.log_start import LogStartRequested
from rlmm.events.pause import PausableTask
from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    AS_TOTAL_RETENTION,
    UNLIMITED,
    OutagePolicy,
    PolicyState,
)
from rlmm.events.read_lease import READ_LEASE_MAX_MS, READ_LEASES_MAX_COUNT
from rlmm.events.registration import NO_BROKER, ProcessRole
from rlmm.events.segment import SegmentEvent
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.gaps import GapReason
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from tests.metadata_builder import (
    NEWEST_EPOCH,
    ORDERS,
    event_id,
    gap,
    gaps,
    policy,
    read_lease,
    segment_metadata,
)

POLICY = replace(policy().policy, retention_ms=700, retention_bytes=70)
DAY_MS = 86_400_000


def test_special_values_when_compared_then_those_of_kafkas_configs() -> None:
    """KIP-405 and KIP-1241."""
    assert (UNLIMITED, AS_TOTAL_RETENTION, AS_LOCAL_RETENTION) == (-1, -2, -1)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (GapReason, ["SHED", "EXTERNAL_START", "ACCEPTED_LOSS"]),
        (AnomalyKind, ["MISSING", "CORRUPT", "LOSS_ACCEPTED"]),
        (OutagePolicy, ["HOLD", "SHED_OLDEST"]),
        (OffloadMode, ["SEGMENT", "STREAM"]),
        (PausableTask, ["COPY", "TRIM", "DELETE"]),
        (PolicyState, ["ENABLING", "ACTIVE", "DISABLING", "DISABLED"]),
        (ProcessRole, ["MANAGER", "GATEWAY"]),
        (
            RemotePartitionDeleteState,
            [f"DELETE_PARTITION_{name}" for name in ("MARKED", "STARTED", "FINISHED")],
        ),
    ],
)
def test_numbers_of_records_when_compared_then_never_change(
    kind: type[Enum], names: list[str]
) -> None:
    assert {each.name: each.value for each in kind} == {
        name: number for number, name in enumerate(names, start=1)
    }
    assert NO_BROKER == -1


@pytest.mark.parametrize(
    ("local_ms", "local_bytes", "expected"),
    [(-2, -2, (700, 70)), (-1, -1, (-1, -1)), (500, 50, (500, 50)), (-2, 50, (700, 50))],
)
def test_local_retention_when_as_total_then_the_total_one(
    local_ms: int, local_bytes: int, expected: tuple[int, int]
) -> None:
    """KIP-405."""
    given = replace(POLICY, local_retention_ms=local_ms, local_retention_bytes=local_bytes)
    found = given.effective_local_retention_ms, given.effective_local_retention_bytes
    assert found == expected


def test_local_retention_when_not_said_then_the_total_one() -> None:
    found = POLICY.effective_local_retention_ms, POLICY.effective_local_retention_bytes
    assert found == (700, 70)


@pytest.mark.parametrize(
    ("lag_ms", "lag_bytes", "expected"),
    [(-1, -1, (500, 50)), (0, 0, (0, 0)), (1, 1, (1, 1)), (-1, 9, (500, 9))],
)
def test_copy_lag_when_as_local_retention_then_that(
    lag_ms: int, lag_bytes: int, expected: tuple[int, int]
) -> None:
    """KIP-1241."""
    given = replace(
        POLICY,
        local_retention_ms=500,
        local_retention_bytes=50,
        copy_lag_ms=lag_ms,
        copy_lag_bytes=lag_bytes,
    )
    assert (given.effective_copy_lag_ms, given.effective_copy_lag_bytes) == expected


def test_policy_when_little_is_said_then_copies_at_once_and_keeps_remote_data() -> None:
    assert (POLICY.copy_lag_ms, POLICY.copy_lag_bytes, POLICY.delete_remote) == (0, 0, False)


def test_events_when_little_is_said_then_no_deadline_and_the_owners_epoch() -> None:
    metadata = segment_metadata(state=SegmentState.COPY_SEGMENT_FINISHED)
    event = SegmentEvent(event_id=event_id(), metadata=metadata)
    request = LogStartRequested(event_id=event_id(), topic_id_partition=ORDERS, offset=5)

    assert (event.copy_timeout_ms, event.copy_deadline_ms) == (0, 0)
    assert request.leader_epoch == -1


@pytest.mark.parametrize("duration_ms", [1, DAY_MS])
def test_lease_when_for_a_day_at_most_then_taken(duration_ms: int) -> None:
    assert read_lease(duration_ms=duration_ms).duration_ms == duration_ms


@pytest.mark.parametrize("duration_ms", [-1, 0, DAY_MS + 1])
def test_lease_when_for_no_time_or_longer_than_a_day_then_refused(duration_ms: int) -> None:
    with pytest.raises(ValueError, match="read lease cannot last"):
        read_lease(duration_ms=duration_ms)


def test_leases_when_counted_then_bounded() -> None:
    assert timedelta(milliseconds=READ_LEASE_MAX_MS) == timedelta(days=1)
    assert READ_LEASES_MAX_COUNT == 64


def test_lease_when_of_no_offsets_then_refused() -> None:
    with pytest.raises(ValueError, match="it has no offsets"):
        read_lease(1, 5, 5)


def test_gap_when_of_no_offsets_then_refused() -> None:
    with pytest.raises(ValueError, match="its range is empty"):
        gap(5, 5)


def test_gaps_when_they_touch_then_are_gaps_of_a_partition() -> None:
    assert len(gaps(gap(10, 20), gap(20, 30)).gaps) == 2


def test_state_when_no_gaps_are_recorded_then_there_are_none() -> None:
    assert PartitionState().gaps == ()


def test_gap_when_of_the_first_offset_alone_then_counts() -> None:
    recorded = PartitionState(recorded_gaps=(gap(0, 1),), gaps_epoch=NEWEST_EPOCH)
    assert recorded.gaps == (gap(0, 1),)
    assert (recorded.accepted_loss_epoch, recorded.accepted_start_offset) == (-1, 0)


def test_state_when_nothing_is_known_then_every_offset_may_be_read() -> None:
    empty = PartitionState()
    assert (empty.first_readable_offset, empty.trimmed_offset, empty.gaps_epoch) == (None, None, -1)
