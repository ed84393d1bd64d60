"""Lookups by time read through the cache of fetches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from rlm.gateway.remote.cached_segments import CachedSegments
from rlm.remote_read.timestamps import RemoteTimestamps
from rsm.segment.errors import NotFoundError, RetriableError
from tests.remote_world import TIP, InlineExecutor, segment_of
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld

BASE_MS = 1_700_000_000_000  # the time of offset 0; each offset is a millisecond later


def _timestamps(world: FetchWorld, *, patience_ms: int = 30_000) -> RemoteTimestamps:
    segments = CachedSegments(
        fetcher=world.fetcher, cache=world.cache, storage=world.storage, patience_ms=patience_ms
    )
    return RemoteTimestamps(world.metadata, segments)


@pytest.fixture
def world() -> FetchWorld:
    """Offsets 0 to 200, stored."""
    world = FetchWorld(executor=InlineExecutor())
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base))
    return world


@pytest.mark.parametrize(
    ("since_ms", "offset"),
    [(0, 0), (BASE_MS + 37, 37), (BASE_MS + 100, 100), (BASE_MS + 199, 199), (BASE_MS + 200, None)],
)
def test_offset_since_when_read_through_the_cache_then_is_the_same(
    world: FetchWorld, since_ms: int, offset: int | None
) -> None:
    """Scenario 42, for the remote tier."""
    assert _timestamps(world).offset_since(TIP, since_ms) == offset


def test_offset_since_when_asked_again_then_nothing_is_read(world: FetchWorld) -> None:
    timestamps = _timestamps(world)
    timestamps.offset_since(TIP, BASE_MS + 37)
    before_count = world.cache.state().counts.miss_count

    assert timestamps.offset_since(TIP, BASE_MS + 38) == 38
    assert world.cache.state().counts.miss_count == before_count


def test_offset_since_when_many_ask_at_once_then_the_store_is_read_once_and_nothing_held() -> None:
    with ThreadPoolExecutor(4) as store, ThreadPoolExecutor(8) as askers:
        world = FetchWorld(executor=store)
        world.claim()
        world.store(segment_of(0))
        timestamps, together = _timestamps(world), Barrier(8)

        def ask() -> int | None:
            together.wait(10)
            return timestamps.offset_since(TIP, BASE_MS + 37)

        found = [each.result(10) for each in [askers.submit(ask) for _ in range(8)]]

    assert found == [37] * 8
    assert world.cache.state().counts.miss_count == 3  # time index, offset index, one chunk
    assert world.cache.state().reader_count == 0


def test_max_timestamp_when_a_segment_is_readable_in_part_then_that_part_is_read(
    world: FetchWorld,
) -> None:
    world.advance_log_start(150)

    found = _timestamps(world).record_of_max_timestamp(TIP)

    assert found is not None
    assert (found.offset, found.timestamp_ms) == (199, BASE_MS + 199)


def test_offset_since_when_the_store_does_not_answer_then_is_retriable() -> None:
    world = FetchWorld()
    world.claim()
    world.store(segment_of(0))

    with pytest.raises(RetriableError, match="in time"):
        _timestamps(world, patience_ms=1).offset_since(TIP, BASE_MS)


def test_offset_since_when_an_object_is_missing_then_says_so(world: FetchWorld) -> None:
    for key in [
        key
        for record in world.metadata.list_remote_log_segments(TIP)
        for key in (each.key for each in record.metadata.objects)
    ]:
        world.objects.delete(key)

    with pytest.raises(NotFoundError):
        _timestamps(world).offset_since(TIP, BASE_MS)
