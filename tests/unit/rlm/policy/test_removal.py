"""Who removes a deleted topic, and when its objects go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.removal import PartitionRemains, plan_removal, removed_by
from rlm.policy.view import Moment
from rlmm.events import RemotePartitionDeleteState
from rlmm.partition_state import PartitionState
from rlmm.processes import AppliedPosition, ProcessRegistered, ProcessRole
from rlmm.spi import (
    MetadataPosition,
    Registration,
)
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.views import US, remote

HEARTBEAT_MS = 1_000
DELETING = RemotePartitionDeleteState.DELETE_PARTITION_STARTED


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


@pytest.mark.parametrize(("applied_offset", "count"), [(7, 0), (8, 1)])
def test_deletion_when_a_gateway_has_not_heard_of_it_then_the_objects_wait(
    applied_offset: int, count: int
) -> None:
    """R15, scenario 76: readers learn that it is gone before they miss its objects."""
    begun = remote(
        0,
        100,
        state=SegmentState.DELETE_SEGMENT_STARTED,
        changed_at=MetadataPosition(partition=0, offset=7),
    )
    gateway = replace(
        manager(1).process,
        role=ProcessRole.GATEWAY,
        applied=(AppliedPosition(partition=0, offset=applied_offset),),
    )
    remains = PartitionRemains(
        state=PartitionState(owner=US, deletion=DELETING),
        segments=(begun,),
        writer=US,
        moment=Moment(wall_ms=0, broker_ms=0),
        orphan_grace_ms=0,
        gateways=(gateway,),
    )
    assert len(plan_removal(remains).deletions) == count
