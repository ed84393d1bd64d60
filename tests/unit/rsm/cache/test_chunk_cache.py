"""Chunks in memory: read once, within the budget, and fairly."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.cache.chunk_lease import ChunkLease
from rsm.segment.errors import RetriableError, UnsupportedError
from tests.unit.rsm.cache.cache_world import Reading, World, key

ACTS = ["read", "ahead", "run", "release", "cancel", "fail", "forget"]


def test_read_when_many_want_one_chunk_then_one_read_of_the_store() -> None:
    """Scenario 58: one read per range however many clients ask."""
    world = World()

    readings = [world.read(1, reader=f"reader {n}") for n in range(50)]
    world.held.run_all()

    assert {reading.result(0).values for reading in readings} == {("chunk 1",)}
    assert world.read_count == {1: 1}
    counts = world.cache.state().counts
    assert (counts.miss_count, counts.joined_count, counts.hit_count) == (1, 49, 0)


def test_read_when_in_memory_then_at_once() -> None:
    world = World()
    world.take(1)

    reading = world.read(1)

    assert reading.result(0).values == ("chunk 1",)
    assert world.cache.state().counts.hit_count == 1


def test_read_when_the_store_fails_then_all_waiters_get_the_error_and_it_is_not_cached() -> None:
    world = World()
    world.errors[1] = RetriableError("busy")
    first, second = world.read(1), world.read(1, reader="b")
    world.held.run_all()

    with pytest.raises(RetriableError):
        first.result(0)
    with pytest.raises(RetriableError):
        second.result(0)

    world.take(1)
    assert world.read_count == {1: 2}


def test_read_when_one_of_several_fails_then_the_others_are_not_kept_in_use() -> None:
    world = World(chunk_count=2)
    world.errors[1] = RetriableError("busy")
    reading = world.read(1, 2)
    world.held.run_all()

    with pytest.raises(RetriableError):
        reading.result(0)

    world.take(3, 4)
    assert world.cache.state().buffered_bytes == 20


def test_read_when_one_waiter_gives_up_then_the_read_continues_for_the_others() -> None:
    """Scenario 59: a client that leaves takes nothing from others."""
    world = World()
    leaving, staying = world.read(1), world.read(1, reader="b")

    assert leaving.cancel()
    world.held.run_all()

    assert staying.result(0).values == ("chunk 1",)
    assert world.read_count == {1: 1}


def test_read_when_all_give_up_then_the_chunk_is_kept_and_not_in_use() -> None:
    """Scenario 58: a read slower than its client's wait fills the cache for the next attempt."""
    world = World(chunk_count=1)
    world.read(1).cancel()
    world.held.run_all()

    assert world.read(1).result(0).values == ("chunk 1",)


def test_read_when_several_chunks_then_all_at_once_and_what_follows_in_memory() -> None:
    world = World(chunk_count=8)
    for index in (3, 4, 6):
        world.take(index)
    reading = world.read(1, 2, extend=(3, 4, 5, 6))

    world.held.run_all()

    assert reading.result(0).values == ("chunk 1", "chunk 2", "chunk 3", "chunk 4")
    assert 5 not in world.read_count


def test_read_when_others_are_active_then_what_follows_is_no_more_than_a_share() -> None:
    """Scenario 115: an extended lease may last until all of its bytes are sent."""
    world = World(chunk_count=8)
    for index in (1, 2, 3, 4, 5):
        world.take(index)
    world.take(6, reader="b")

    lease = world.read(1, extend=(2, 3, 4, 5)).result(0)

    assert lease.values == ("chunk 1", "chunk 2", "chunk 3", "chunk 4")


def test_read_when_budget_is_in_use_then_waits_for_its_turn() -> None:
    world = World(chunk_count=2)
    in_use = world.read(1, 2)
    world.held.run_all()
    waiting = world.read(3, reader="b")

    assert not world.held.waiting
    in_use.result(0).release()
    world.held.run_all()

    assert waiting.result(0).values == ("chunk 3",)


def test_read_when_large_and_small_wait_then_in_the_order_of_asking() -> None:
    """Scenario 115: no client starves, not even one that needs more room than others."""
    world = World(chunk_count=2)
    leases = [world.read(1), world.read(2, reader="b")]
    world.held.run_all()
    large = world.read(3, 4, reader="c")
    small = world.read(5, reader="d")

    leases[0].result(0).release()
    assert not world.held.waiting
    leases[1].result(0).release()
    world.held.run_all()
    large.result(0).release()
    world.held.run_all()

    assert small.result(0).values == ("chunk 5",)


def test_read_when_the_first_in_the_queue_gives_up_then_the_next_gets_its_room() -> None:
    world = World(chunk_count=2)
    one, other = world.read(1), world.read(2, reader="b")
    world.held.run_all()
    large, small = world.read(3, 4, reader="c"), world.read(5, reader="d")
    one.result(0).release()

    large.cancel()
    world.held.run_all()

    assert small.result(0).values == ("chunk 5",)
    assert other.result(0).values == ("chunk 2",)


def test_read_when_larger_than_the_budget_then_unsupported() -> None:
    world = World(chunk_count=2)

    with pytest.raises(UnsupportedError):
        world.read(1, 2, 3)


def test_read_when_executor_is_shut_down_then_retriable() -> None:
    executor = ThreadPoolExecutor(1)
    world = World(executor=executor)
    executor.shutdown()

    with pytest.raises(RetriableError, match="cache is closed"):
        world.read(1).result(0)

    assert world.cache.state().buffered_bytes == 0


def test_read_when_pending_read_is_cancelled_by_shutdown_then_retriable() -> None:
    executor = ThreadPoolExecutor(1)
    world = World(executor=executor)
    gate = threading.Event()
    blocker = executor.submit(gate.wait)
    reading = world.read(1)

    executor.shutdown(wait=False, cancel_futures=True)
    gate.set()

    with pytest.raises(RetriableError, match="canceled"):
        reading.result(10)
    assert blocker.result(10)


def test_read_ahead_when_chunk_is_asked_for_later_then_read_once() -> None:
    world = World()
    world.take(1)

    assert world.ahead(2)
    assert world.ahead(2)
    world.held.run_all()
    world.take(2)

    assert world.read_count == {1: 1, 2: 1}


def test_read_ahead_when_over_the_readers_share_then_refused() -> None:
    """Scenario 115: the budget is shared evenly by those who read."""
    world = World(chunk_count=4)
    world.take(1, reader="a")
    world.take(11, reader="b")

    assert [world.ahead(index, reader="a") for index in (2, 3)] == [True, False]


def test_read_ahead_when_another_has_not_read_for_long_then_the_share_is_larger() -> None:
    world = World(chunk_count=4)
    world.take(11, reader="b")
    world.clock.sleep_ms(1_000)
    world.take(1, reader="a")

    assert [world.ahead(index, reader="a") for index in (2, 3)] == [True, True]


def test_read_ahead_when_memory_is_full_then_takes_only_what_nobody_is_about_to_read() -> None:
    """One reader's read-ahead does not drive out what others are about to read."""
    world = World(chunk_count=6)
    for index in (21, 22):
        world.take(index, reader="gone")
    world.cache.leave("gone")
    world.take(11, reader="b")
    world.ahead(12, reader="b")
    world.take(1, reader="a")
    world.ahead(2, reader="a")
    world.held.run_all()

    assert world.ahead(3, reader="a")
    world.held.run_all()

    assert world.is_in_memory(11)
    assert world.is_in_memory(12)


def test_read_ahead_when_as_many_reads_as_threads_are_under_way_then_refused() -> None:
    world = World(concurrent_reads=2)
    world.read(1)
    world.ahead(2)

    assert not world.ahead(3)
    assert world.held.submitted_count == 2


def test_read_ahead_when_others_wait_for_room_then_refused() -> None:
    world = World(chunk_count=1)
    world.read(1)
    world.read(2, reader="b")

    assert not world.ahead(3)


def test_read_when_memory_is_full_of_what_others_hold_then_takes_the_furthest_from_use() -> None:
    """A waiting reader comes before chunks that others will ask for later."""
    world = World(chunk_count=3)
    world.take(1, reader="a")
    world.ahead(2, reader="a")
    world.held.run_all()
    world.take(11, reader="b")

    world.take(21, reader="c")

    assert world.is_in_memory(1)
    assert world.is_in_memory(11)
    assert world.is_in_memory(21)


def test_lease_when_lost_unreleased_then_its_memory_is_taken_back() -> None:
    world = World(chunk_count=1)
    reading = world.read(1)
    world.held.run_all()

    del reading
    world.take(2)

    assert world.read_count[2] == 1


def test_lease_when_released_twice_then_given_back_once() -> None:
    world = World(chunk_count=1)
    first, second = world.read(1), world.read(1, reader="b")
    world.held.run_all()

    first.result(0).release()
    first.result(0).release()
    waiting = world.read(2, reader="c")

    assert not waiting.done()
    assert not world.held.waiting
    second.result(0).release()
    assert world.held.waiting


def test_forget_when_chunks_are_in_memory_then_they_go_and_others_stay() -> None:
    world = World()
    world.take(1, 2)
    world.cache.forget({"another"})
    before = world.cache.state().buffered_bytes

    world.cache.forget({key(1).name})

    assert (before, world.cache.state().buffered_bytes, world.cache.names()) == (20, 0, frozenset())


def test_forget_when_a_chunk_is_used_then_it_is_dropped_with_its_last_user() -> None:
    """Leases in use keep their bytes."""
    world = World()
    readings = [world.read(1, reader=reader) for reader in "ab"]
    world.held.run_all()
    leases = [reading.result(0) for reading in readings]

    world.cache.forget({key(1).name})
    held = []
    for lease in leases:
        held.append((lease.values, world.cache.state().buffered_bytes))
        lease.release()

    assert held == [(("chunk 1",), 10)] * 2
    assert world.cache.state().buffered_bytes == 0


def test_forget_when_a_chunk_is_being_read_then_who_waits_gets_it() -> None:
    """A prefetched chunk, for which nobody waits, is dropped at once."""
    world = World()
    world.take(1)
    reading = world.read(2)
    world.ahead(3)

    world.cache.forget({key(1).name})
    world.held.run_all()
    buffered_bytes = world.cache.state().buffered_bytes
    with reading.result(0) as lease:
        values = lease.values

    assert (values, buffered_bytes) == (("chunk 2",), 10)
    assert world.cache.state().buffered_bytes == 0


def test_discard_when_asked_for_again_then_read_again() -> None:
    world = World()
    world.take(1)

    world.cache.discard(key(1))
    world.take(1)

    assert world.read_count == {1: 2}


@given(st.data())
def test_cache_when_used_in_any_order_then_the_budget_holds_and_all_get_theirs(
    data: st.DataObject,
) -> None:
    """Scenario 115: whatever is requested, cancelled, failed or in use."""
    world = World(chunk_count=3, concurrent_reads=3)
    pending: list[tuple[Reading, tuple[int, ...]]] = []
    leases: list[ChunkLease[str]] = []
    for _ in range(data.draw(st.integers(1, 40))):
        act = data.draw(st.sampled_from(ACTS))
        reader = data.draw(st.sampled_from("abc"))
        index = data.draw(st.integers(0, 5))
        if act == "read":
            wanted = tuple(range(index, index + data.draw(st.integers(1, 3))))
            pending.append((world.read(*wanted, reader=reader), wanted))
        elif act in ("ahead", "forget", "fail"):
            do_meanwhile(world, act, index, reader)
        elif act == "run" and world.held.waiting:
            world.held.run(data.draw(st.integers(0, len(world.held.waiting) - 1)))
        elif act == "release" and leases:
            leases.pop(data.draw(st.integers(0, len(leases) - 1))).release()
        elif act == "cancel" and pending:
            pending.pop(data.draw(st.integers(0, len(pending) - 1)))[0].cancel()
        leases += taken(pending)
        assert world.cache.state().buffered_bytes <= 30
    world.errors.clear()
    while pending or leases:
        world.held.run_all()
        leases += taken(pending)
        assert leases or not pending
        while leases:
            leases.pop().release()
    assert world.cache.state().waiting_count == 0
    world.take(100, 101, 102)


def do_meanwhile(world: World, act: str, index: int, reader: str) -> None:
    """Read a chunk that nobody waits for."""
    match act:
        case "ahead":
            world.ahead(index, reader=reader)
        case "forget":
            world.cache.forget({key(index).name})
        case _:
            world.errors[index] = RetriableError("busy")


def taken(pending: list[tuple[Reading, tuple[int, ...]]]) -> list[ChunkLease[str]]:
    """Remove the readings that are done; return the leases of those that did not fail."""
    leases: list[ChunkLease[str]] = []
    for reading, wanted in [entry for entry in pending if entry[0].done()]:
        pending.remove((reading, wanted))
        if reading.exception(0) is None:
            assert reading.result(0).values == tuple(f"chunk {index}" for index in wanted)
            leases.append(reading.result(0))
    return leases


def test_cache_when_used_by_threads_then_bounded_reads_and_nothing_left_in_use() -> None:
    """The executor limits concurrent reads; no read is lost between threads."""
    with ThreadPoolExecutor(4) as executor:
        world = World(chunk_count=6, concurrent_reads=4, executor=executor)

        def read_along(reader: str) -> int:
            for index in range(100):
                with world.read(index, reader=reader).result(30) as lease:
                    assert lease.values == (f"chunk {index}",)
                world.ahead(index + 1, reader=reader)
            return 100

        with ThreadPoolExecutor(8) as clients:
            done = list(clients.map(read_along, "abcdefgh"))

    assert done == [100] * 8
    state = world.cache.state()
    assert state.reading_count == state.waiting_count == 0
    assert state.buffered_bytes <= 60


def test_read_when_cancelled_while_queued_then_raises_cancelled() -> None:
    world = World(chunk_count=1)
    world.read(1)
    queued = world.read(2, reader="b")

    queued.cancel()

    with pytest.raises(CancelledError):
        queued.result(0)
