"""What sequential readers find in memory, and which chunks are reserved for them."""

from __future__ import annotations

from rsm.cache.chunk_lease import ChunkRequest
from tests.unit.rsm.cache.cache_world import World, key


def test_read_now_when_all_is_in_memory_then_as_read() -> None:
    world = World()
    world.take(1, 2, 3)

    lease = world.cache.read_now([key(1)], reader="a", extend=[key(2), key(4), key(3)])

    assert lease is not None
    assert lease.values == ("chunk 1", "chunk 2")
    world.take(5, 6, reader="b")
    assert world.is_in_memory(1)
    lease.release()
    assert world.cache.state().counts.hit_count >= 1


def test_read_now_when_something_is_missing_or_being_read_then_nothing_happens() -> None:
    world = World()
    world.take(1)
    reading = world.read(2)
    before = world.cache.state()

    assert world.cache.read_now([key(1), key(2)], reader="a") is None
    assert world.cache.read_now([key(3)], reader="a") is None
    assert world.cache.state() == before
    reading.cancel()


def test_peek_when_in_memory_then_the_chunk_without_a_claim_on_it() -> None:
    world = World(chunk_count=1)
    world.take(1)

    assert world.cache.peek(key(1)) == "chunk 1"
    world.take(2)
    assert world.cache.peek(key(1)) is None


def test_read_when_a_chunk_read_ahead_is_passed_by_then_it_is_held_no_more() -> None:
    world = World(chunk_count=4)
    world.take(1)
    for index in (2, 3, 4):
        world.ahead(index)
    world.held.run_all()

    world.take(3)
    assert world.ahead(5)  # in place of the first two

    world.held.run_all()
    assert [world.cache.peek(key(index)) for index in (4, 5)] == ["chunk 4", "chunk 5"]


def test_read_ahead_when_the_chunk_is_in_memory_then_loaded_is_run_where_it_was_read() -> None:
    world = World()
    world.take(1)
    seen: list[str | None] = []
    request = ChunkRequest(
        key=key(2),
        size_bytes=10,
        load=lambda: "chunk 2",
        loaded=lambda: seen.append(world.cache.peek(key(2))),
    )

    world.cache.read_ahead(request, reader="a")
    assert seen == []
    world.held.run_all()

    assert seen == ["chunk 2"]
