"""Sequential readers get a response at once if its data is in memory and verified."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.fetch.remote_result import RemoteSlice
from rsm.segment.local_segment import AbortedTransaction
from tests.remote_world import TIP, positions_of, segment_of
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld, content_of, taken

_LIMIT_BYTES = 11_000  # one batch of the segments here


@pytest.fixture
def world() -> FetchWorld:
    """Three segments of 100 offsets, seven chunks each."""
    world = FetchWorld()
    world.claim()
    for number in range(3):
        world.store(segment_of(100 * number))
    return world


def _read_on(world: FetchWorld, offset: int, count: int) -> int:
    """Fetch `count` times in sequence; return the offset after them."""
    for _ in range(count):
        found = world.slice(offset, max_bytes=_LIMIT_BYTES)
        offset = found.next_offset
        found.release()
    return offset


def _ready(
    world: FetchWorld, offset: int, *, max_bytes: int = _LIMIT_BYTES, read_committed: bool = False
) -> RemoteSlice | None:
    request = world.request(offset, max_bytes=max_bytes, read_committed=read_committed)
    return world.fetcher.read_now(request, world.metadata.partition_state(TIP))


def test_ready_when_the_reader_reads_on_then_given_at_once_what_a_fetch_would_give(
    world: FetchWorld,
) -> None:
    offset = _read_on(world, 0, 2)

    found = _ready(world, offset)

    assert found is not None
    assert (found.base_offset, found.next_offset) == (offset, offset + 10)
    expected = world.slice(offset, max_bytes=_LIMIT_BYTES, client="b")
    assert content_of(found) == content_of(expected)


def test_ready_when_given_then_read_ahead_continues(world: FetchWorld) -> None:
    """No fetch waits for the store any more, except at the start of a segment."""
    offset = _read_on(world, 0, 2)
    served_count = 0
    while (found := _ready(world, offset)) is not None:
        offset = found.next_offset
        found.release()
        world.held.run_all()
        served_count += 1

    assert offset == 100
    assert served_count == 8


@pytest.mark.parametrize("offset", [0, 10, 30, 250])
def test_ready_when_the_reader_does_not_read_on_then_nothing(
    world: FetchWorld, offset: int
) -> None:
    _read_on(world, 0, 2)

    assert _ready(world, offset) is None


def test_ready_when_the_metadata_has_changed_then_a_fetch_must_look(world: FetchWorld) -> None:
    """Data in memory may be below the log start by now."""
    offset = _read_on(world, 0, 2)
    world.advance_log_start(50)

    assert _ready(world, offset) is None


def test_ready_when_the_chunk_has_left_memory_then_nothing(world: FetchWorld) -> None:
    offset = _read_on(world, 0, 2)
    for number in range(7):
        world.cache.discard(world.chunk_key(0, number))

    assert _ready(world, offset) is None


def test_ready_when_not_checked_before_then_nothing(world: FetchWorld) -> None:
    """The event loop verifies nothing: many small batches would delay all other clients."""
    found = world.slice(0, max_bytes=_LIMIT_BYTES)
    found.release()

    assert _ready(world, found.next_offset) is None


def test_ready_when_a_prefetched_batch_is_corrupt_then_only_a_fetch_reports_it(
    world: FetchWorld,
) -> None:
    """Scenario 63."""
    segment = segment_of(300)
    stored = world.store(segment)
    (log_key,) = [each.key for each in stored.objects if each.key.endswith(".log")]
    content = bytearray(segment.log)
    content[positions_of(segment)[4] + 100] ^= 1
    world.rewrite(log_key, bytes(content))
    offset = _read_on(world, 300, 2)

    while (found := _ready(world, offset)) is not None:
        offset = found.next_offset
        found.release()

    assert offset == 340
    assert world.anomalies.counts() == {}


def test_ready_when_committed_then_with_the_aborted_transactions() -> None:
    world = FetchWorld()
    world.claim()
    aborted = AbortedTransaction(
        producer_id=7, first_offset=21, last_offset=29, last_stable_offset=30
    )
    world.store(segment_of(0), aborted=[aborted])
    offset = 0
    for _ in range(2):
        fetching = world.fetch(offset, max_bytes=_LIMIT_BYTES, read_committed=True)
        world.held.run_all()
        found = taken(fetching)
        offset = found.next_offset
        found.release()

    ready = _ready(world, offset, read_committed=True)

    assert ready is not None
    assert ready.aborted_transactions == (aborted,)


@given(
    limits=st.lists(st.integers(1, 40_000), min_size=1, max_size=6),
    chunk_bytes=st.integers(6_000, 40_000),
)
def test_ready_when_used_wherever_possible_then_every_byte_once(
    limits: list[int], chunk_bytes: int
) -> None:
    """Scenario 65: responses at once and after a wait give one log."""
    world = FetchWorld(chunk_bytes=chunk_bytes)
    world.claim()
    segments = [segment_of(100 * number) for number in range(2)]
    for segment in segments:
        world.store(segment)
    content, offset, step = [], 0, 0
    while offset < 200:
        limit = limits[step % len(limits)]
        found = _ready(world, offset, max_bytes=limit) or world.slice(offset, max_bytes=limit)
        offset, step = found.next_offset, step + 1
        content.append(content_of(found))
        world.held.run_all()

    assert b"".join(content) == b"".join(segment.log for segment in segments)


@pytest.mark.parametrize("number", range(1, 10))
def test_fetch_when_its_batch_ends_in_the_next_chunk_then_both_are_read_at_once(
    number: int,
) -> None:
    """A cold fetch waits for the store twice, for index and log, wherever its batch is."""
    world = FetchWorld()
    world.claim()
    segment = segment_of(0)
    world.store(segment)

    fetching = world.fetch(10 * number, max_bytes=_LIMIT_BYTES)
    world.held.run()  # the index
    for _ in range(len(world.held.waiting)):  # the requests to the store
        world.held.run()

    found = taken(fetching)
    assert found.base_offset == 10 * number
    assert content_of(found) == segment.log[slice(*positions_of(segment)[number : number + 2])]
