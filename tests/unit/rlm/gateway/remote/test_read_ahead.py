"""Sequential readers: prefetched data, and fair shares."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.remote.read_ahead_depth import ReadAheadDepth
from tests.remote_world import segment_of
from tests.unit.rlm.gateway.remote.fetch_world import (
    CHUNK_BYTES,
    FetchWorld,
    content_of,
    taken,
)


def world_of(segment_count: int = 1, *, budget_bytes: int = 1 << 20) -> FetchWorld:
    """Return a world with segments of 100 offsets in seven chunks; the latency keeps that size."""
    world = FetchWorld(budget_bytes=budget_bytes)
    world.watched.carries = lambda size_bytes: world.clock.sleep_ms(40 * size_bytes // CHUNK_BYTES)
    world.claim()
    for number in range(segment_count):
        world.store(segment_of(100 * number))
    return world


def depth(least: int = 2, most: int = 4) -> ReadAheadDepth:
    return ReadAheadDepth.begin(least_bytes=least * 10, most_bytes=most * 10, chunk_bytes=10)


def test_fetch_when_first_of_its_reader_then_nothing_is_read_ahead() -> None:
    world = world_of()

    world.slice(0, max_bytes=11_000).release()

    assert world.log_reads() == [0]


def test_fetch_when_it_follows_the_last_answer_then_the_next_chunks_are_read_at_once() -> None:
    world = world_of()
    next_offset = 0
    for _ in range(2):
        found = world.slice(next_offset, max_bytes=11_000)
        next_offset = found.next_offset
        found.release()

    assert world.log_reads() == [0, 0, 1, 2, 3]
    reads_before = len(world.watched.reads)
    taken(world.fetch(next_offset, max_bytes=11_000)).release()
    assert len(world.watched.reads) == reads_before


def test_fetch_when_it_waits_and_reads_on_then_the_next_chunks_are_read_meanwhile() -> None:
    """The gateway requests the next chunks together with the one that the reader waits for."""
    world = world_of()
    next_offset = world.slice(0, max_bytes=11_000).next_offset

    fetching = world.fetch(next_offset, max_bytes=11_000)

    assert world.cache.state().reading_count == 3
    world.held.run_all()
    taken(fetching).release()


def test_fetch_when_asked_for_the_same_again_then_continues_as_before() -> None:
    """Scenario 58: the client requests again what was not sent in time."""
    world = world_of()
    next_offset = world.slice(0, max_bytes=11_000).next_offset

    first, again = (world.slice(next_offset, max_bytes=11_000) for _ in range(2))

    assert again.base_offset == first.base_offset
    assert world.watched.reads_of(".meta") == []


def test_fetch_when_reader_jumps_then_what_was_read_ahead_is_not_held_for_it() -> None:
    world = world_of(segment_count=3)
    for offset in (0, 10):
        world.slice(offset, max_bytes=11_000).release()

    world.slice(250, max_bytes=11_000).release()

    assert world.log_reads()[-1] in (2, 3)
    held = world.cache._shares._readers_by_key
    assert len(held) <= 2


def test_fetch_when_segment_ends_soon_then_the_next_one_is_read_ahead_with_its_indexes() -> None:
    """A reader does not wait at the boundary between segments."""
    world = world_of(segment_count=2)
    next_offset = 70
    while next_offset < 100:
        fetching = world.fetch(next_offset, max_bytes=11_000, read_committed=True)
        world.held.run_all()
        found = taken(fetching)
        next_offset = found.next_offset
        found.release()

    assert len(world.watched.reads_of(".meta")) == 2
    assert taken(world.fetch(next_offset, max_bytes=11_000, read_committed=True)).base_offset == 100


def test_forget_when_client_has_gone_then_nothing_is_kept_for_it() -> None:
    """Scenario 59."""
    world = world_of()
    for offset in (0, 10):
        world.slice(offset, max_bytes=11_000, client="a").release()

    world.fetcher.forget("a")
    world.fetcher.forget("a")

    assert world.cache.state().reader_count == 0


def test_fetch_when_there_is_no_room_then_nothing_is_read_ahead() -> None:
    world = world_of(budget_bytes=2 * CHUNK_BYTES)
    next_offset = 0
    for _ in range(9):
        found = world.slice(next_offset, max_bytes=11_000)
        next_offset = found.next_offset
        found.release()

    assert next_offset == 90
    assert world.cache.state().counts.read_ahead_refused_count
    assert world.cache.state().buffered_bytes <= 2 * CHUNK_BYTES


def test_depth_when_reader_waits_then_deeper_up_to_the_most() -> None:
    found = depth(most=11)
    depths = []
    for _ in range(3):
        found = found.after_waiting()
        depths.append(found.chunk_count)

    assert depths == [8, 11, 11]


def test_depth_when_never_waiting_then_back_to_the_least() -> None:
    found = depth().after_waiting().after_waiting()
    for _ in range(100):
        found = found.after_in_time()

    assert found.chunk_count == 2


@given(st.lists(st.booleans()))
def test_depth_when_waiting_or_not_then_within_bounds(waits: list[bool]) -> None:
    found = depth()
    for waited in waits:
        found = found.after_waiting() if waited else found.after_in_time()
        assert 2 <= found.chunk_count <= 4


def test_fetch_when_fifty_backfill_at_once_then_within_memory_and_all_to_the_end() -> None:
    """Scenarios 115, 117: each of the readers gets every byte; the budget holds, reads are bounded.

    Readers begin at different offsets, so that they do not only share what one has read.
    """
    segments = [segment_of(100 * number) for number in range(4)]
    whole = b"".join(segment.log for segment in segments)
    with ThreadPoolExecutor(4) as executor:
        world = FetchWorld(executor=executor, budget_bytes=12 * CHUNK_BYTES, concurrent_reads=4)
        world.claim()
        for segment in segments:
            world.store(segment)

        def backfill(number: int) -> bytes:
            content, offset = [], 8 * number // 10 * 10
            while offset < 400:
                fetching = world.fetch(offset, max_bytes=25_000, client=f"client {number}")
                found = taken(fetching)
                offset = found.next_offset
                content.append(content_of(found))
                assert world.cache.state().buffered_bytes <= 12 * CHUNK_BYTES
            return b"".join(content)

        with ThreadPoolExecutor(50) as clients:
            contents = list(clients.map(backfill, range(50)))

    assert contents[0] == whole
    assert all(content and whole.endswith(content) for content in contents)
    assert world.watched.most_at_once <= 4
    assert world.cache.state().reading_count == world.cache.state().waiting_count == 0


def test_fetch_when_answers_are_of_several_chunks_then_read_ahead_continues_to_the_end() -> None:
    """Data that was sent no longer counts in its reader's share."""
    world = world_of(segment_count=6, budget_bytes=12 * CHUNK_BYTES)
    next_offset, missed_count = 0, 0
    while next_offset < 600:
        fetching = world.fetch(next_offset, max_bytes=40_000)
        missed_count += not fetching.done()
        world.held.run_all()
        found = taken(fetching)
        next_offset = found.next_offset
        found.release()

    assert missed_count <= 3
    assert world.cache.state().counts.read_ahead_refused_count == 0
