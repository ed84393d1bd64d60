"""How much of a segment is read at once: by the store's measured latency and the reader's share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm.remote_read.segment_division import RangeSize, SegmentDivision
from tests.remote_world import segment_of
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld

_MIB = 1 << 20
_PLENTY = 256 * _MIB


def measured(*, begin_ms: float, ms_per_mib: float) -> RangeSize:
    """Return measurements of a store with this time to start, and this time for each MiB."""
    found = RangeSize(least_bytes=4 * _MIB, most_bytes=16 * _MIB)
    for size in (1, 4, 1, 4):
        found = found.after(size * _MIB, begin_ms + size * ms_per_mib)
    return found


def test_size_when_nothing_was_measured_then_the_least() -> None:
    unknown = RangeSize(least_bytes=4 * _MIB, most_bytes=16 * _MIB)

    assert unknown.size_bytes(share_bytes=_PLENTY) == 4 * _MIB


def test_size_when_only_a_little_was_read_then_as_if_the_store_started_at_once() -> None:
    unknown = RangeSize(least_bytes=4 * _MIB, most_bytes=16 * _MIB)

    for read_ms, mib in ((0, 16), (1, 16), (2, 8), (3, 4), (500, 4)):
        found = unknown.after(_MIB, read_ms)
        assert found.size_bytes(share_bytes=_PLENTY) == mib * _MIB


def test_size_when_the_store_begins_soon_then_as_much_as_it_gives_in_little_time() -> None:
    """A request takes the same processor time whatever its size."""
    for ms_per_mib, mib in ((0.5, 16), (2, 8), (3, 4), (10, 4)):
        fast = measured(begin_ms=1, ms_per_mib=ms_per_mib)
        assert fast.size_bytes(share_bytes=_PLENTY) == mib * _MIB


def test_size_when_the_store_is_slow_to_begin_then_larger() -> None:
    for begin_ms, mib in ((20, 4), (45, 8), (90, 16), (900, 16)):
        slow = measured(begin_ms=begin_ms, ms_per_mib=5)
        assert slow.size_bytes(share_bytes=_PLENTY) == mib * _MIB


def test_size_when_more_takes_no_longer_then_the_most() -> None:
    assert measured(begin_ms=30, ms_per_mib=0).size_bytes(share_bytes=_PLENTY) == 16 * _MIB


def test_size_when_the_store_becomes_fast_then_small_again() -> None:
    found = measured(begin_ms=90, ms_per_mib=5)
    for _ in range(100):
        found = found.after(_MIB, 5).after(4 * _MIB, 20)

    assert found.size_bytes(share_bytes=_PLENTY) == 4 * _MIB


def test_size_when_many_read_then_no_more_than_leaves_room_to_read_ahead() -> None:
    """Scenario 115: fifty backfills of a slow store keep to their shares."""
    slow = measured(begin_ms=900, ms_per_mib=5)

    assert slow.size_bytes(share_bytes=32 * _MIB) == 8 * _MIB
    assert slow.size_bytes(share_bytes=_PLENTY // 50) == 4 * _MIB


@given(
    reads=st.lists(st.tuples(st.integers(1, 64 * _MIB), st.floats(0, 60_000))),
    share_bytes=st.integers(0, _PLENTY),
)
def test_size_when_measured_anything_then_within_bounds(
    reads: list[tuple[int, float]], share_bytes: int
) -> None:
    found = RangeSize(least_bytes=4 * _MIB, most_bytes=16 * _MIB)
    for size_bytes, duration_ms in reads:
        found = found.after(size_bytes, duration_ms)

    assert found.size_bytes(share_bytes=share_bytes) in (4 * _MIB, 8 * _MIB, 16 * _MIB)


def test_division_when_the_store_was_slow_then_of_segments_that_are_divided_after() -> None:
    """A segment keeps its division, because all its readers share the chunks."""
    world = FetchWorld()
    world.claim()
    early, late = (world.store(segment_of(base)).segment_id for base in (0, 100))
    division = SegmentDivision(
        least_bytes=4 * _MIB, most_bytes=16 * _MIB, share_bytes=lambda: _PLENTY
    )
    assert division.known_chunk_bytes(early) is None
    assert division.chunk_bytes(early) == 4 * _MIB

    division.record_read(_MIB, 900)
    division.record_read(4 * _MIB, 910)

    assert division.chunk_bytes(early) == 4 * _MIB
    assert division.chunk_bytes(late) == division.known_chunk_bytes(late) == 16 * _MIB


def test_fetch_when_the_store_is_slow_then_later_segments_take_fewer_reads() -> None:
    """Requests cost money and time: a slow store is asked for more at once."""
    world = FetchWorld(chunk_bytes=1 << 19, budget_bytes=64 * _MIB)
    world.claim()
    segments = [world.store(segment_of(2_000 * number, batch_count=200)) for number in range(3)]
    world.watched.begins = lambda: world.clock.sleep_ms(30)

    offset = 0
    while offset < 6_000:
        found = world.slice(offset, max_bytes=200_000)
        offset = found.next_offset
        found.release()

    names = [name for name, _ in world.watched.reads]
    first, *_, last = (names.count(segment.objects[0].key) for segment in segments)
    assert first >= 4
    assert last == 1
