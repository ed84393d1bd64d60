"""A reader's first fetch at a position reads only the required bytes from the store."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest

from rlm.remote_read.anomalies import AnomalyLabels
from rsm.segment.errors import CorruptError
from tests.remote_world import TIP, WHOLE, positions_of, segment_of
from tests.segment_builder import build_batch, build_segment, records
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld, in_use, taken


@pytest.fixture
def world() -> FetchWorld:
    """A world with a claim and nothing stored."""
    world = FetchWorld()
    world.claim()
    return world


def test_fetch_when_cold_then_no_more_is_read_than_asked_for_and_its_batch() -> None:
    """The first bytes wait for one range read, which is no larger than the client's request."""
    world = FetchWorld(chunk_bytes=1 << 20)
    world.claim()
    world.store(segment_of(0, batch_count=80))
    begins = positions_of(segment_of(0, batch_count=80))

    found = world.slice(35, max_bytes=300_000)

    (read,) = world.watched.reads_of(".log")
    assert begins[2] <= read.start_position <= begins[3]
    assert len(read) == 300_000
    assert 250_000 < found.size_bytes <= 300_000


def test_fetch_when_cold_and_its_batch_is_larger_than_asked_for_then_still_one_read() -> None:
    world = FetchWorld(chunk_bytes=1 << 20)
    world.claim()
    world.store(segment_of(0, batch_count=4, value_bytes=20_000))

    found = world.slice(15, max_bytes=1_000)

    assert found.base_offset == 10
    assert len(world.watched.reads_of(".log")) == 1


def test_fetch_when_cold_then_memory_is_made_ready_for_the_next_one() -> None:
    """Memory is touched while nobody waits, because new pages take longer than a disk read."""
    world = FetchWorld(chunk_bytes=4 << 20, budget_bytes=32 << 20)
    world.claim()
    world.store(segment_of(0, batch_count=30, value_bytes=10_000))
    reading = world.fetch(35, max_bytes=1 << 20)
    buffers = world.fetcher._parts._buffers
    world.held.run_all()

    assert taken(reading).size_bytes > 1_000_000
    assert buffers.free_bytes == 1 << 20


def test_fetch_when_somebody_reads_on_there_then_a_look_reads_nothing(world: FetchWorld) -> None:
    world.store(segment_of(0))
    for offset in (0, 10):
        world.slice(offset, max_bytes=11_000).release()
    reads_before = world.log_reads()

    assert world.slice(25, max_bytes=11_000, client="b").base_offset == 20

    assert world.log_reads() == reads_before


def test_fetch_when_object_is_cut_short_then_an_error_until_it_is_whole_again(
    world: FetchWorld,
) -> None:
    """Scenario 62: bytes that are missing are never taken for the end of the log."""
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    right = world.objects.read_range(key, WHOLE)
    world.rewrite(key, right[:50_000])
    fetching = world.fetch(45, max_bytes=11_000)
    world.held.run_all()

    with pytest.raises(CorruptError) as caught:
        fetching.result(0)

    assert caught.value.context["segment_id"] == stored.segment_id
    assert world.anomalies.counts() == {AnomalyLabels("orders", "3", "corrupt"): 1}
    world.rewrite(key, right)
    world.slice(45).release()


LARGE = [
    (5_000, 1),
    (100, 2),  # has an index entry; the large batch right after it has none
    (90_000, 5),
    (5_000, 3),
    (200_000, 10),
    (200_000, 10),
    (70_000, 4),
    (100, 1),
]


@pytest.mark.parametrize("offset", range(sum(count for _, count in LARGE)))
def test_fetch_when_batches_are_large_then_begins_with_the_one_that_holds_the_offset(
    offset: int,
) -> None:
    """Scenario 57: also if an index entry only suggests where the batch begins."""
    world = _large_world()
    found = world.slice(offset, max_bytes=1_000)

    assert found.base_offset <= offset < found.next_offset
    assert (found.base_offset, found.next_offset) in set(pairwise(_large_bounds()))
    assert in_use(world) == list(found.lease.keys)


def test_fetch_when_a_large_batch_lies_before_then_that_is_not_read() -> None:
    world = _large_world()

    world.slice(_large_bounds()[5] + 1, max_bytes=1_000)

    (read,) = world.watched.reads_of(".log")
    assert read.start_position > 300_000


def test_fetch_when_the_next_batch_is_corrupt_then_served_what_is_right() -> None:
    """Scenario 62: wrong bytes at a guessed position are no error of this fetch."""
    world = _large_world()
    (record,) = world.metadata.list_remote_log_segments(TIP)
    key = record.metadata.objects[0].key
    right = world.objects.read_range(key, WHOLE)
    broken = 5_000 + 100 + 90_000 + 1_000  # in the batch after the one of 90,000 bytes
    world.rewrite(key, right[:broken] + bytes([right[broken] ^ 1]) + right[broken + 1 :])

    found = world.slice(4, max_bytes=1_000)

    assert (found.base_offset, found.next_offset) == (3, 8)
    assert world.anomalies.counts() == {}


def _large_world() -> FetchWorld:
    world = FetchWorld(chunk_bytes=1 << 20)
    world.claim()
    bounds = _large_bounds()
    sizes = [size for size, _ in LARGE]
    world.store(
        build_segment(
            [
                build_batch(
                    records(end - begin, base_offset=begin, value_bytes=size // (end - begin))
                )
                for size, (begin, end) in zip(sizes, pairwise(bounds), strict=True)
            ]
        )
    )
    return world


def _large_bounds() -> list[int]:
    return list(accumulate((count for _, count in LARGE), initial=0))
