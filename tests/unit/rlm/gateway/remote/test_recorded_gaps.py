"""Fetches at offsets in recorded gaps."""

from __future__ import annotations

import pytest

from rlm.gateway.fetch.remote_result import GapBelow, ReadRefused
from rlm.gateway.model.actions import PartitionFetch
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.wire.error_codes import ErrorCode
from rlmm.lookup import Absence, NotStored
from tests.remote_world import TIP, segment_of
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld


@pytest.fixture
def world() -> FetchWorld:
    """Offsets 0 to 100 and 200 to 300 are stored."""
    world = FetchWorld()
    world.claim()
    for base in (0, 200):
        world.store(segment_of(base))
    return world


def read_at(offset: int, *, local_start: int) -> PartitionFetch:
    return PartitionFetch(
        topic_id_partition=TIP,
        offset=offset,
        max_bytes=1_000,
        local_start_offset=local_start,
        last_fetched_epoch=-1,
        is_above_end=False,
    )


@pytest.mark.parametrize("offset", [100, 150, 199])
def test_fetch_when_in_a_recorded_gap_then_the_next_stored_batch(
    world: FetchWorld, offset: int
) -> None:
    """R6, scenario 83: the next batch, as after compaction."""
    world.record_gap(100, 200)

    found = world.slice(offset)

    assert found.base_offset == 200


def test_fetch_when_the_hole_is_not_on_record_then_stays_one(world: FetchWorld) -> None:
    """R6: without a recorded gap, no offset is skipped."""
    found = world.fetch(150).result(0)

    assert isinstance(found, NotStored)
    assert found.absence is Absence.HOLE


def test_absent_when_a_recorded_gap_ends_where_the_broker_begins_then_continues_there(
    world: FetchWorld,
) -> None:
    """R6, scenario 83: not out of range, which would make clients reset or skip."""
    world.record_gap(300, 350)
    found = world.fetch(320).result(0)
    assert isinstance(found, NotStored)

    outcome = RemotePartitionReader(world.metadata, world.fetcher).absent(
        read_at(320, local_start=350), found
    )

    assert outcome == GapBelow(350)


def test_absent_when_the_broker_begins_above_a_recorded_gap_then_a_storage_error(
    world: FetchWorld,
) -> None:
    """R15: nothing proves that the offsets in between are lost."""
    world.record_gap(300, 350)
    found = world.fetch(320).result(0)
    assert isinstance(found, NotStored)

    outcome = RemotePartitionReader(world.metadata, world.fetcher).absent(
        read_at(320, local_start=400), found
    )

    assert outcome == ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR)
