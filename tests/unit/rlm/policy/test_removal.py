"""Which manager removes a deleted topic, and when it deletes the objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.removal import PartitionRemains, RemovalPlan, plan_removal, removed_by
from rlm.policy.view import Moment
from rlmm.events.registration import AppliedPosition, ProcessRegistered, ProcessRole, Registration
from rlmm.positions import MetadataPosition
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState, ReadLease, RemotePartitionDeleteState
from rsm.segment.metadata import SegmentState, StoredObject, Writer
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import DELETE_FINISHED, DELETE_STARTED, DELETED, DELETING, MARKED
from tests.unit.rlm.policy.views import THEM, US, remote

HEARTBEAT_MS = 1_000
GRACE_MS = 50


def manager(broker_id: int, heartbeat_ms: int = 0) -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=broker_id),
        process_id=UUID(int=broker_id),
        role=ProcessRole.MANAGER,
        broker_id=broker_id,
        http_address="",
        heartbeat_interval_ms=HEARTBEAT_MS,
        version="0",
    )
    return Registration(process=process, heartbeat_ms=heartbeat_ms)


def removers(own_id: int, registrations: Iterable[Registration], broker_ms: int = 0) -> list[int]:
    known = tuple(registrations)
    return [
        removed_by(UUID(int=number), known, own_id=own_id, broker_ms=broker_ms)
        for number in range(6)
    ]


def test_remover_when_all_live_then_topics_are_shared_out_alike_everywhere() -> None:
    """Scenario 76: each manager comes to the same answer."""
    registrations = [manager(each) for each in (3, 1, 2)]

    assert removers(1, registrations) == removers(2, registrations) == [1, 2, 3, 1, 2, 3]


def test_remover_when_one_is_gone_then_the_others_take_over() -> None:
    registrations = [manager(1, heartbeat_ms=9_000), manager(2), manager(3, heartbeat_ms=9_000)]

    assert set(removers(1, registrations, broker_ms=9_500)) == {1, 3}


def test_remover_when_none_is_registered_yet_then_itself() -> None:
    assert removers(4, []) == [4] * 6


@pytest.mark.parametrize(("silent_ms", "remover_ids"), [(2_999, {1, 2}), (3_000, {1})])
def test_remover_when_three_heartbeats_are_missing_then_is_gone(
    silent_ms: int, remover_ids: set[int]
) -> None:
    found = removers(1, [manager(2, heartbeat_ms=7)], broker_ms=7 + silent_ms)

    assert set(found) == remover_ids


def test_remover_when_a_gateway_is_registered_then_it_removes_nothing() -> None:
    gateway = manager(2)
    gateway = replace(gateway, process=replace(gateway.process, role=ProcessRole.GATEWAY))

    assert removers(1, [gateway]) == [1] * 6


def remains(
    *segments: SegmentRecord,
    deletion: RemotePartitionDeleteState | None = DELETING,
    owner: Writer = US,
    broker_ms: int = 0,
    leases: tuple[ReadLease, ...] = (),
    gateways: tuple[ProcessRegistered, ...] = (),
) -> PartitionRemains:
    return PartitionRemains(
        state=PartitionState(owner=owner, deletion=deletion, read_leases=leases),
        segments=segments,
        writer=US,
        moment=Moment(wall_ms=0, broker_ms=broker_ms),
        orphan_grace_ms=GRACE_MS,
        gateways=gateways,
    )


def deleted(number: int, *, deadline_ms: int = 0, changed_ms: int = 0) -> SegmentRecord:
    return remote(
        number * 100,
        number * 100 + 100,
        state=DELETE_FINISHED,
        copy_deadline_ms=deadline_ms,
        changed_ms=changed_ms,
    )


def finished(record: SegmentRecord) -> SegmentRecord:
    """Return a segment as after its copy: the lengths of its objects are known."""
    objects = (StoredObject(key="whole", length_bytes=1),)
    return replace(record, metadata=replace(record.metadata, objects=objects))


def test_removal_when_nothing_is_marked_yet_then_marks() -> None:
    assert plan_removal(remains(remote(0, 100), deletion=None)) == RemovalPlan(next_state=MARKED)


@pytest.mark.parametrize(("owner", "should_claim"), [(US, False), (THEM, True)])
def test_removal_when_another_owns_the_partition_then_claims_before_it_continues(
    owner: Writer, *, should_claim: bool
) -> None:
    marked = plan_removal(remains(remote(0, 100), deletion=MARKED, owner=owner))
    started = plan_removal(remains(remote(0, 100), owner=owner))

    assert marked == RemovalPlan(should_claim=should_claim, next_state=DELETING)
    assert (started.should_claim, started.next_state, len(started.deletions)) == (
        should_claim,
        None,
        1,
    )


def test_removal_when_segments_are_left_then_deletes_those_and_waits() -> None:
    left = [
        remote(start, start + 100, state=state)
        for start, state in zip(range(100, 400, 100), list(SegmentState)[:3], strict=True)
    ]

    planned = plan_removal(remains(deleted(0), *left))

    assert [each.record for each in planned.deletions] == left
    assert (planned.sweeps, planned.next_state, planned.purges) == ((), None, ())


def test_removal_when_a_repair_job_has_a_segment_then_it_stays_and_holds_the_end() -> None:
    planned = plan_removal(remains(remote(0, 100, state=DELETE_STARTED, is_dead_lettered=True)))

    assert planned == RemovalPlan()


@pytest.mark.parametrize(("broker_ms", "deleted_starts"), [(9, [100]), (10, [0, 100])])
def test_removal_when_somebody_reads_a_segment_then_it_is_deleted_when_the_lease_ends(
    broker_ms: int, deleted_starts: list[int]
) -> None:
    lease = ReadLease(
        lease_id=UUID(int=1),
        offsets=OffsetRange(start_offset=99, end_offset=100),
        expires_ms=10,
        holder="an audit",
    )
    left = (remote(0, 100), remote(100, 200))

    planned = plan_removal(remains(*left, broker_ms=broker_ms, leases=(lease,)))

    starts = [each.record.metadata.offsets.start_offset for each in planned.deletions]
    assert starts == deleted_starts


def test_removal_when_a_copy_may_be_under_way_then_waits_and_deletes_its_objects_once_more() -> (
    None
):
    """No record would name objects that the copy writes up to its deadline."""
    whole = finished(deleted(0, deadline_ms=1_000))
    early, late = deleted(1, deadline_ms=10), deleted(2, deadline_ms=20)

    waits = plan_removal(remains(whole, early, late, broker_ms=20))
    goes_on = plan_removal(remains(whole, early, late, broker_ms=21))

    assert waits == RemovalPlan()
    assert goes_on == RemovalPlan(sweeps=(early, late), next_state=DELETED)


@pytest.mark.parametrize(
    ("deadline_ms", "changed_ms"),
    [pytest.param(100, 7, id="its deadline is later"), pytest.param(7, 100, id="it was changed")],
)
def test_removal_when_finished_then_records_go_after_deadline_and_grace(
    deadline_ms: int, changed_ms: int
) -> None:
    record = deleted(0, deadline_ms=deadline_ms, changed_ms=changed_ms)
    newer = deleted(1, deadline_ms=1_000)

    at_end, after = (
        plan_removal(remains(record, newer, deletion=DELETED, broker_ms=broker_ms))
        for broker_ms in (100 + GRACE_MS, 101 + GRACE_MS)
    )

    assert at_end == RemovalPlan()
    assert after == RemovalPlan(purges=(record,))


@pytest.mark.parametrize(
    ("state", "applied_offset", "count"),
    [
        (DELETE_STARTED, 7, 0),
        (DELETE_STARTED, 8, 1),
        (SegmentState.COPY_SEGMENT_FINISHED, 7, 1),
    ],
)
def test_deletion_when_a_gateway_has_not_heard_of_it_then_the_objects_wait(
    state: SegmentState, applied_offset: int, count: int
) -> None:
    """R15, scenario 76: gateways know of the deletion before objects are missing."""
    record = remote(0, 100, state=state, changed_at=MetadataPosition(partition=0, offset=7))
    gateway = replace(
        manager(1).process,
        role=ProcessRole.GATEWAY,
        applied=(AppliedPosition(partition=0, offset=applied_offset),),
    )

    assert len(plan_removal(remains(record, gateways=(gateway,))).deletions) == count
