from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.anomalies import anomalies_text
from rlm.policy.blocked import Blocked
from rlm.status.cluster_status import (
    LedPartition,
    PartitionMetadata,
    PartitionStatus,
    brokers_with_tiered_leaders,
    is_tiered,
    partition_status,
)
from rlm.status.document import PartitionReport
from rlmm.events.policy import PolicyState
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.segment.epochs import Lineage
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly, log_starts
from tests.unit.rlm.policy.views import LINEAGE, POLICY, SEGMENT_BYTES, TIP, remote, stored_up_to

OFFSETS = PartitionOffsets(log_start_offset=200, last_stable_offset=480, high_watermark=500)
LEADS = PartitionReport(
    topic_id_partition=TIP,
    role="leader",
    leader_epoch=5,
    is_claimed=True,
    lag_bytes=7,
    lag_segments=1,
    trim_blocked=Blocked(reason="young"),
)
FOLLOWS = replace(LEADS, role="follower")


def status(
    segments: tuple[SegmentRecord, ...] = stored_up_to(400),
    *,
    offsets: PartitionOffsets | None = OFFSETS,
    reports: dict[int, PartitionReport] | None = None,
    policy_state: PolicyState | None = PolicyState.ACTIVE,
    log_start: int | None = None,
    lineage: Lineage = LINEAGE,
) -> PartitionStatus:
    led = LedPartition(topic_id_partition=TIP, leader_id=1, leader_epoch=5, offsets=offsets)
    policy = None if policy_state is None else replace(POLICY, state=policy_state)
    state = PartitionState(lineage=lineage, log_starts=log_starts(log_start))
    stored = PartitionMetadata(policy=policy, state=state, segments=segments)
    return partition_status(led, stored, {1: LEADS} if reports is None else reports)


def test_status_when_all_answer_then_the_documented_json() -> None:
    row = status().to_json()

    assert row == {
        "topic": "orders",
        "topic_id": "AAAAAAAAAAAAAAAAAAAABw",
        "partition": 0,
        "role": "leader",
        "leader_epoch": 5,
        "log_start_offset": 0,
        "local_start_offset": 200,
        "last_tiered_offset": 399,
        "pending_upload_offset": 400,
        "last_stable_offset": 480,
        "high_watermark": 500,
        "lag_bytes": 7,
        "lag_segments": 1,
        "remote_bytes": 4 * SEGMENT_BYTES,
        "remote_overlap_bytes": 0,
        "remote_segments": 4,
        "copy_blocked": None,
        "trim_blocked": {"reason": "young"},
        "gaps": [],
        "leader_id": 1,
        "policy_state": "ACTIVE",
        "diverged": False,
        "external_start": False,
        "future_timestamps": None,
        "problem": None,
        "anomalies": [],
        "read_leases": [],
        "expiry_blocked": None,
        "oldest_unstored_age_ms": None,
        "stream": None,
    }


def test_status_when_nothing_is_stored_then_minus_one_and_all_is_pending() -> None:
    row = status(())

    assert (row.last_tiered_offset, row.pending_upload_offset) == (-1, 200)
    assert (row.log_start_offset, row.remote_bytes, row.remote_segments) == (200, 0, 0)


def test_status_when_all_is_stored_then_nothing_is_pending() -> None:
    row = status(stored_up_to(500))

    assert (row.last_tiered_offset, row.pending_upload_offset) == (499, -1)


@pytest.mark.parametrize(("end", "unstored"), [(400, 100), (500, 0)])
def test_status_when_records_are_not_stored_then_counts_offsets_to_the_high_watermark(
    end: int, unstored: int
) -> None:
    assert status(stored_up_to(end)).unstored_offsets == unstored


def test_status_when_the_leader_is_silent_then_what_is_not_stored_is_unknown() -> None:
    assert status(offsets=None).unstored_offsets is None


def test_status_when_hole_then_pending_names_it() -> None:
    """Scenario 80: the first offset that is not stored, though later ones are."""
    row = status((*stored_up_to(200), remote(300, 400)))

    assert (row.last_tiered_offset, row.pending_upload_offset) == (399, 200)


def test_status_when_segments_are_not_finished_then_not_counted() -> None:
    """Scenario 71: the remote size does not count segments under copy or deletion."""
    others = (
        remote(400, 500, state=SegmentState.COPY_SEGMENT_STARTED),
        remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED, number=1),
    )

    row = status((*stored_up_to(400), *others))

    assert (row.remote_segments, row.remote_bytes) == (4, 4 * SEGMENT_BYTES)


def test_status_when_a_merged_segment_overlaps_its_parts_then_their_bytes_count_once() -> None:
    """The status has the overlap as a value of its own, because operators pay for both."""
    merged = remote(0, 400, number=9, size=4 * SEGMENT_BYTES)

    row = status((*stored_up_to(400), merged))

    assert (row.remote_segments, row.remote_bytes) == (5, 4 * SEGMENT_BYTES)
    assert row.remote_overlap_bytes == 4 * SEGMENT_BYTES
    assert (row.last_tiered_offset, row.pending_upload_offset) == (399, 400)


def test_status_when_stored_is_out_of_lineage_then_not_tiered() -> None:
    row = status(lineage=Lineage.of((0, 0), (2, 250)))

    assert (row.last_tiered_offset, row.pending_upload_offset) == (249, 250)


def test_status_when_log_start_was_recorded_then_it_wins() -> None:
    """Scenario 92."""
    assert status(log_start=300).log_start_offset == 300


def test_status_when_leader_cannot_be_asked_then_unknown_not_guessed() -> None:
    row = status(offsets=None)

    unknown = (row.local_start_offset, row.last_stable_offset, row.high_watermark)
    assert unknown == (None, None, None)
    assert (row.log_start_offset, row.last_tiered_offset, row.pending_upload_offset) == (
        0,
        399,
        400,
    )


@pytest.mark.parametrize(
    ("reports", "role", "lag_bytes"),
    [
        ({}, None, None),
        ({1: LEADS, 2: FOLLOWS}, "leader", 7),
        ({2: FOLLOWS}, None, None),
        ({1: FOLLOWS}, "follower", None),
        ({2: LEADS}, None, None),
    ],
)
def test_status_when_managers_speak_then_only_the_leaders_own_is_believed(
    reports: dict[int, PartitionReport], role: str | None, lag_bytes: int | None
) -> None:
    row = status(reports=reports)

    assert (row.role, row.to_json()["lag_bytes"]) == (role, lag_bytes)


@pytest.mark.parametrize("policy_state", [None, PolicyState.DISABLED])
def test_status_when_not_tiered_then_nothing_is_pending(policy_state: PolicyState | None) -> None:
    row = status(policy_state=policy_state, reports={})

    assert (row.role, row.pending_upload_offset) == ("none", -1)


@pytest.mark.parametrize(
    ("state", "count", "tiered"),
    [
        (PolicyState.ENABLING, 0, True),
        (PolicyState.DISABLING, 0, True),
        (PolicyState.DISABLED, 0, False),
        (PolicyState.DISABLED, 100, True),
    ],
)
def test_is_tiered_when_policy_or_stored_data_then_listed(
    state: PolicyState, count: int, *, tiered: bool
) -> None:
    """Scenario 77: a topic that is no longer tiered is listed while old data can be read."""
    assert is_tiered(replace(POLICY, state=state), stored_up_to(count)) is tiered


@pytest.mark.parametrize(
    ("leader_id", "policy_state", "needed"),
    [
        (1, PolicyState.ACTIVE, {1}),
        (1, PolicyState.DISABLING, {1}),
        (1, PolicyState.DISABLED, set()),
        (1, None, set()),
        (None, PolicyState.ACTIVE, set()),
    ],
)
def test_managers_when_counted_then_needed_where_tiered_partitions_are_led(
    leader_id: int | None, policy_state: PolicyState | None, needed: set[int]
) -> None:
    led = LedPartition(topic_id_partition=TIP, leader_id=leader_id, leader_epoch=5, offsets=None)
    policy = None if policy_state is None else replace(POLICY, state=policy_state)
    stored = PartitionMetadata(policy=policy, state=PartitionState(), segments=stored_up_to(400))

    assert brokers_with_tiered_leaders([led], {TIP: stored}) == needed


def test_status_when_an_object_is_damaged_then_shows_it_until_its_segment_is_deleted() -> None:
    stored, gone = remote(0, 100), remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED)
    found = anomaly(stored.metadata.segment_id.id.int, key="0.log")
    state = PartitionState(lineage=LINEAGE, anomalies=(found,))
    led = LedPartition(topic_id_partition=TIP, leader_id=1, leader_epoch=5, offsets=OFFSETS)

    shown, hidden = (
        partition_status(led, PartitionMetadata(policy=POLICY, state=state, segments=(each,)), {})
        for each in (stored, gone)
    )

    assert shown.to_json()["anomalies"] == [
        {
            "segment_id": id_to_text(found.segment),
            "object": "0.log",
            "kind": "missing",
            "first_ms": 5_000,
            "last_ms": 6_000,
            "attempts": 3,
        }
    ]
    assert anomalies_text(shown.anomalies) == "missing: 0.log"
    assert shown.damaged_from_offset == 0
    assert hidden.anomalies == ()


def test_status_when_somebody_reads_then_shows_who_and_until_when() -> None:
    lease = ReadLease(
        lease_id=UUID(int=3),
        offsets=OffsetRange(start_offset=0, end_offset=100),
        expires_ms=9_000,
        holder="spark:host",
    )
    led = LedPartition(topic_id_partition=TIP, leader_id=1, leader_epoch=5, offsets=OFFSETS)
    state = PartitionState(lineage=LINEAGE, read_leases=(lease,))
    stored = PartitionMetadata(
        policy=POLICY, state=state, segments=stored_up_to(400), leases=state.active_leases(8_999)
    )

    assert partition_status(led, stored, {}).to_json()["read_leases"] == [
        {"holder": "spark:host", "start_offset": 0, "end_offset": 100, "expires_ms": 9_000}
    ]
