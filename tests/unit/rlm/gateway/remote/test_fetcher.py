"""One partition's part of a fetch: whole batches, from the one with the offset on."""

from __future__ import annotations

import ctypes
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.remote_read.anomalies import AnomalyLabels
from rlmm.lookup import Absence, NotStored
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError, UnsupportedError
from rsm.segment.local_segment import AbortedTransaction
from tests.remote_world import TIP, WHOLE, positions_of, segment_of
from tests.segment_builder import (
    build_batch,
    build_batches,
    build_control_batch,
    build_legacy_message,
    build_segment,
    records,
)
from tests.unit.rlm.gateway.remote.fetch_world import (
    CHUNK_BYTES,
    FetchWorld,
    content_of,
    in_use,
    taken,
)


@pytest.fixture
def world() -> FetchWorld:
    """A world with a claim and nothing stored."""
    world = FetchWorld()
    world.claim()
    return world


MIXED = [
    build_legacy_message(0, b"old", magic=0),
    build_legacy_message(1, b"newer", magic=1),
    *build_batches(3, base_offset=2, value_bytes=300, codec=CompressionType.ZSTD),
    build_control_batch(32, ControlType.COMMIT, producer_id=5),
    build_batch([], base_offset=33, last_offset=40),
    build_batch(records(1, base_offset=41, value_bytes=5000)),
    *build_batches(2, base_offset=42, value_bytes=300),
]
MIXED_ENDS = [1, 2, 12, 22, 32, 33, 41, 42, 52, 62]


@given(
    chunk_bytes=st.integers(500, 8_000),
    begin=st.integers(0, 61),
    limits=st.lists(st.integers(0, 12_000), min_size=1, max_size=5),
    gap=st.integers(0, 5),
)
def test_fetch_when_read_on_in_any_pieces_then_byte_for_byte_as_stored(
    chunk_bytes: int, begin: int, limits: list[int], gap: int
) -> None:
    """Scenarios 55, 56, 57, 65: whole batches in order, wherever chunks end; at least one."""
    world = FetchWorld(chunk_bytes=chunk_bytes)
    world.claim()
    first = build_segment(MIXED, index_interval_bytes=1_000)
    next_base = first.offsets.end_offset + gap
    second = segment_of(next_base, batch_count=3, value_bytes=200)
    world.store(first, end_offset=next_base)
    world.store(second)
    ends = [*MIXED_ENDS, *(next_base + 10 * n for n in (1, 2, 3))]
    batches = [*MIXED, *build_batches(3, base_offset=next_base, value_bytes=200)]
    number = next(n for n, end in enumerate(ends) if end > begin)

    offset, step = begin, 0
    while number < len(batches):
        limit = limits[step % len(limits)]
        found = world.slice(offset, max_bytes=limit)
        served = content_of(found)
        count = ends.index(found.next_offset) + 1 - number
        assert count >= 1
        assert served == b"".join(batches[number : number + count])
        assert len(served) <= limit or count == 1
        offset, number, step = found.next_offset, number + count, step + 1

    assert world.fetch(offset).result(0) == NotStored(
        topic_id_partition=TIP, offset=offset, absence=Absence.BEYOND_STORED
    )


def test_fetch_when_offset_is_inside_a_batch_then_begins_with_that_batch(
    world: FetchWorld,
) -> None:
    """Scenario 57."""
    world.store(segment_of(0))

    found = world.slice(37)

    assert found.base_offset == 30
    assert len(world.watched.reads_of(".meta")) == 1


def test_fetch_when_cold_then_one_index_read_and_one_range_read(world: FetchWorld) -> None:
    world.store(segment_of(0, value_bytes=100))

    world.slice(35).release()

    assert len(world.watched.reads) == 2


def test_fetch_when_read_on_then_no_index_is_needed(world: FetchWorld) -> None:
    world.store(segment_of(0))
    found = world.slice(0, max_bytes=11_000)
    found.release()

    assert world.slice(found.next_offset, max_bytes=11_000).base_offset == found.next_offset

    assert world.watched.reads_of(".meta") == []


def test_fetch_when_first_batch_is_larger_than_the_limit_then_whole_or_nothing_as_asked(
    world: FetchWorld,
) -> None:
    """Scenario 55: whole if it is the response's first, otherwise an empty set."""
    large = build_batch(records(3, value_bytes=20_000))
    world.store(build_segment([large]))

    whole = world.fetch(0, max_bytes=1_000, min_one_batch=True)
    nothing = world.fetch(0, max_bytes=1_000, min_one_batch=False, client="b")
    world.held.run_all()

    assert content_of(taken(whole)) == large
    assert taken(nothing).buffers == ()
    assert taken(nothing).next_offset == 0


def test_fetch_when_batch_is_larger_than_all_memory_then_unsupported() -> None:
    world = FetchWorld(budget_bytes=5 * CHUNK_BYTES)
    world.claim()
    world.store(build_segment([build_batch(records(1, value_bytes=100_000))]))
    fetching = world.fetch(0)
    world.held.run_all()

    with pytest.raises(UnsupportedError):
        fetching.result(0)


def test_fetch_when_in_a_compaction_gap_then_the_next_segments_first_batch(
    world: FetchWorld,
) -> None:
    """Scenario 56."""
    world.store(segment_of(0), end_offset=150)
    world.store(segment_of(150))

    found = world.slice(120)

    assert found.base_offset == 150


def test_fetch_when_gap_is_at_the_end_of_all_then_the_broker_is_asked_after_it(
    world: FetchWorld,
) -> None:
    """Scenario 56: the reader gets no endless series of empty responses at the end of the store."""
    world.store(segment_of(0), end_offset=150)
    fetching = world.fetch(120)
    world.held.run_all()

    outcome = fetching.result(0)

    assert isinstance(outcome, NotStored)
    assert (outcome.absence, outcome.offset) == (Absence.BEYOND_STORED, 150)


def test_fetch_when_below_log_start_then_says_so(world: FetchWorld) -> None:
    """Scenario 47."""
    world.store(segment_of(0))
    world.advance_log_start(50)

    outcome = world.fetch(49).result(0)

    assert isinstance(outcome, NotStored)
    assert outcome.absence is Absence.BELOW_LOG_START


def test_fetch_when_in_a_hole_then_says_so(world: FetchWorld) -> None:
    """Scenario 63: offsets that should be stored are not skipped."""
    world.store(segment_of(0))
    world.store(segment_of(200))

    outcome = world.fetch(100).result(0)

    assert isinstance(outcome, NotStored)
    assert outcome.absence is Absence.HOLE


def test_fetch_when_lineage_cuts_the_segment_then_ends_there() -> None:
    """Scenario 8: the old leader's segment is read up to the cut, then the new leader's."""
    world = FetchWorld(chunk_bytes=1 << 18)
    lineage = Lineage.of((0, 0), (2, 60))
    old, new = segment_of(0), segment_of(60, leader_epoch=2)
    world.store(old)
    world.store(new, lineage=lineage)
    world.claim(lineage)

    before = world.slice(45)
    after = world.slice(before.next_offset)

    assert before.next_offset == 60
    assert content_of(before) == old.log[positions_of(old)[4] : positions_of(old)[6]]
    assert content_of(after) == new.log


def test_fetch_when_log_start_advances_then_no_longer_served_to_who_reads_on(
    world: FetchWorld,
) -> None:
    world.store(segment_of(0))
    next_offset = world.slice(0, max_bytes=11_000).next_offset

    world.advance_log_start(90)

    assert isinstance(world.fetch(next_offset).result(0), NotStored)


def test_fetch_when_read_committed_then_aborted_transactions_up_to_what_is_returned() -> None:
    """Scenarios 50, 51, 52: all transactions that overlap the response, no later ones."""
    world = FetchWorld(chunk_bytes=1 << 18)
    world.claim()
    transactions = [
        AbortedTransaction(producer_id=n, first_offset=a, last_offset=z, last_stable_offset=a)
        for n, (a, z) in enumerate([(0, 9), (5, 25), (29, 500), (30, 35), (12, 12)])
    ]
    world.store(segment_of(0), aborted=transactions)
    length = positions_of(segment_of(0))[3] - positions_of(segment_of(0))[1]
    fetching = world.fetch(15, max_bytes=length, read_committed=True)
    world.held.run_all()

    found = taken(fetching)

    assert (found.base_offset, found.next_offset) == (10, 30)
    assert found.aborted_transactions == tuple(transactions[n] for n in (1, 2, 4))
    assert len(world.watched.reads_of(".meta")) == 1


def test_fetch_when_read_uncommitted_then_no_aborted_transactions(world: FetchWorld) -> None:
    aborted = AbortedTransaction(
        producer_id=1, first_offset=0, last_offset=50, last_stable_offset=0
    )
    world.store(segment_of(0), aborted=[aborted])

    assert world.slice(0).aborted_transactions == ()


def test_fetch_when_object_is_missing_then_not_found_and_the_anomaly_is_reported_once(
    world: FetchWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario 63: an error with the segment; counted each time, logged once."""
    gone = world.store(segment_of(0))
    world.objects.delete(gone.objects[0].key)
    with caplog.at_level(logging.WARNING):
        fetches = [world.fetch(0), world.fetch(0, client="b")]
        world.held.run_all()

    with pytest.raises(NotFoundError) as caught:
        fetches[0].result(0)

    assert caught.value.context["segment_id"] == gone.segment_id
    assert world.anomalies.counts() == {AnomalyLabels("orders", "3", "missing"): 2}
    assert len(caplog.records) == 1
    assert gone.objects[0].key in caplog.text


def test_fetch_when_another_segment_holds_the_offset_then_that_one_answers(
    world: FetchWorld,
) -> None:
    """The damaged segment is counted and stays recorded; a reader still gets the records."""
    world.store(segment_of(0))
    damaged = world.store(segment_of(0))
    both = world.metadata.list_remote_log_segments(damaged.topic_id_partition)
    first = world.metadata.remote_log_segment_metadata(
        damaged.topic_id_partition, 0, leader_epoch=0
    )
    assert first is not None, "one of the two answers"
    world.objects.delete(first.objects[0].key)

    fetching = world.fetch(0)
    world.held.run_all()
    found = fetching.result(0)

    assert not isinstance(found, NotStored)
    assert {found.segment_id, first.segment_id} == {r.metadata.segment_id for r in both}
    assert [each.segment_id for each in world.anomalies.open_now()] == [first.segment_id]


def test_fetch_when_the_object_is_back_then_is_served_and_the_anomaly_is_closed(
    world: FetchWorld,
) -> None:
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    right = world.objects.read_range(key, WHOLE)
    world.objects.delete(key)
    failing = world.fetch(0)
    world.held.run_all()
    assert isinstance(failing.exception(0), NotFoundError)
    (opened,) = world.anomalies.open_now()

    world.rewrite(key, right)
    world.slice(0).release()

    assert world.anomalies.open_now() == ()
    assert [each.anomaly_id for each in world.anomalies.take_closed()] == [opened.anomaly.id]


def test_fetch_when_its_segment_expires_meanwhile_then_that_is_no_anomaly(
    world: FetchWorld,
) -> None:
    """Scenario 63: a segment that expires during a read is below the log start, not missing."""
    expired = world.store(segment_of(0))
    world.store(segment_of(100))
    fetching = world.fetch(45)
    world.advance_log_start(100)
    for stored in expired.objects:
        world.objects.delete(stored.key)
    world.held.run_all()

    found = fetching.result(0)

    assert isinstance(found, NotStored)
    assert found.absence is Absence.BELOW_LOG_START
    assert world.anomalies.counts() == {}


def test_fetch_when_a_bit_was_flipped_then_corrupt_until_the_store_is_right_again(
    world: FetchWorld,
) -> None:
    """Scenarios 61, 62: never wrong bytes; data that is wrong only in memory is read again."""
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    right = world.objects.read_range(key, WHOLE)
    world.rewrite(key, right[:50_000] + bytes([right[50_000] ^ 1]) + right[50_001:])
    fetching = world.fetch(45)
    world.held.run_all()

    with pytest.raises(CorruptError) as caught:
        fetching.result(0)

    assert key in str(caught.value)
    assert caught.value.context["segment_id"] == stored.segment_id
    assert world.anomalies.counts() == {AnomalyLabels("orders", "3", "corrupt"): 1}
    world.rewrite(key, right)
    world.slice(45).release()


def test_fetch_when_the_next_batch_is_corrupt_then_served_up_to_it_and_then_an_error() -> None:
    """Scenarios 62, 63: an error for the corrupt batch only."""
    world = FetchWorld(chunk_bytes=1 << 18)
    world.claim()
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    right = world.objects.read_range(key, WHOLE)
    second = positions_of(segment_of(0))[1] + 100
    world.rewrite(key, right[:second] + bytes([right[second] ^ 1]) + right[second + 1 :])

    found = world.slice(0)
    behind = world.fetch(10)
    world.held.run_all()

    assert found.next_offset == 10
    with pytest.raises(CorruptError):
        behind.result(0)


def test_fetch_when_offsets_go_back_in_another_chunk_then_an_error_and_none_is_left_out(
    world: FetchWorld,
) -> None:
    """Scenario 62: no CRC covers a batch's offset; it must follow the batch before it."""
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    right = world.objects.read_range(key, WHOLE)
    begins = positions_of(segment_of(0))
    assert begins[6] < 4 * CHUNK_BYTES < begins[7]  # the last chunk begins within the batch
    world.rewrite(key, right[: begins[7]] + bytes(8) + right[begins[7] + 8 :])
    for offset in range(0, 70, 10):
        assert world.slice(offset, max_bytes=1).next_offset == offset + 10

    fetching = world.fetch(70, max_bytes=1)
    world.held.run_all()

    with pytest.raises(CorruptError):
        fetching.result(0)


def test_fetch_when_store_fails_for_now_then_retriable_and_the_next_attempt_is_served(
    world: FetchWorld,
) -> None:
    """Scenario 111: a failed lookup is an error, never an answer from elsewhere."""
    world.store(segment_of(0))
    world.watched.errors.append(RetriableError("busy"))
    failing = world.fetch(0)
    world.held.run_all()

    with pytest.raises(RetriableError):
        failing.result(0)

    assert world.slice(0).base_offset == 0
    assert world.anomalies.counts() == {}


def test_fetch_when_given_up_then_the_next_attempt_finds_the_chunk(world: FetchWorld) -> None:
    """Scenario 58: the store is slower than the client; the read continues and fills the cache."""
    world.store(segment_of(0))
    world.fetch(0).cancel()
    world.held.run_all()

    found = taken(world.fetch(0))

    assert found.base_offset == 0
    assert len(world.watched.reads) == 1


@pytest.mark.parametrize("step_count", [0, 1])
def test_fetch_when_given_up_at_any_step_then_nothing_is_in_use(
    world: FetchWorld, step_count: int
) -> None:
    """Scenario 59: before the index is read, and before the log is read."""
    world.store(segment_of(0))
    fetching = world.fetch(37)
    for _ in range(step_count):
        world.held.run()

    assert fetching.cancel()
    world.held.run_all()

    assert world.cache.state().reading_count == world.cache.state().waiting_count == 0
    assert in_use(world) == []


def test_fetch_when_fifty_want_the_same_then_each_part_is_read_once(world: FetchWorld) -> None:
    """Scenario 58: single flight, of the index too."""
    world.store(segment_of(0, value_bytes=100))

    fetches = [world.fetch(35, client=f"client {n}") for n in range(50)]
    world.held.run_all()

    assert {taken(fetching).base_offset for fetching in fetches} == {30}
    assert len(world.watched.reads) == 2


def test_slice_when_released_then_nothing_is_in_use(world: FetchWorld) -> None:
    """Scenario 59."""
    world.store(segment_of(0))
    found = world.slice(0)
    held_before = in_use(world)

    found.release()
    found.release()

    assert held_before
    assert in_use(world) == []


def test_slices_when_more_is_read_than_fits_then_memory_is_used_again_but_not_theirs() -> None:
    """A response that is being sent does not change, whatever is read meanwhile."""
    mib = 1 << 20
    world = FetchWorld(chunk_bytes=mib, budget_bytes=32 * mib)
    world.claim()
    for number in range(20):
        world.store(segment_of(120 * number, batch_count=12, value_bytes=70_000))
    first = world.slice(0, max_bytes=mib)
    content = b"".join(first.buffers)
    first.release()
    next_offset, megabytes = first.next_offset, set[int]()
    while next_offset < 2400:
        found = world.slice(next_offset, max_bytes=mib)
        next_offset = found.next_offset
        megabytes |= {ctypes.addressof(ctypes.c_ubyte.from_buffer(p)) // mib for p in found.buffers}
        found.release()

    assert world.watched.reads_of(".log")
    assert b"".join(first.buffers) == content
    stored_bytes = sum(map(len, world.watched.reads_of(".log")))
    # A chunk of 1 MiB can begin in one aligned MiB of the addresses and end in the next.
    assert 2 * 33 * mib < stored_bytes // 2
    assert len(megabytes) <= 2 * 33
