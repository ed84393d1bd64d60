from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrappers.slow import SlowChunkStorage
from rsm.storage.wrappers.throttle import RateGate, ThrottledChunkStorage
from tests.contract.sources import source_of
from tests.fakes.clock import FakeClock


def test_throttle_when_much_is_written_then_takes_its_time() -> None:
    """Scenario 25: the rate of a copy is that of its quota."""
    clock = FakeClock()
    inner = MemoryChunkStorage(wall_ms=clock.wall_ms)
    storage = ThrottledChunkStorage(inner, clock, bytes_per_second=1_000_000)

    for number in range(10):
        storage.create_with_content(f"a/{number}", source_of(*[b"x" * 100_000] * 10))

    # Ten million bytes. The bytes of one second may come at once, and the last piece ahead of time.
    assert 8_800 <= clock.monotonic_ms() <= 10_000


def test_throttle_when_reading_then_as_slow() -> None:
    clock = FakeClock()
    inner = MemoryChunkStorage(wall_ms=clock.wall_ms)
    inner.create_with_content("a", source_of(b"x" * 1_000))
    storage = ThrottledChunkStorage(inner, clock, bytes_per_second=1_000)

    whole = ByteRange(start_position=0, end_position=1_000)
    for _ in range(5):
        storage.read_range("a", whole)
        storage.read_range_into("a", whole, memoryview(bytearray(1_000)))

    assert 7_900 <= clock.monotonic_ms() <= 10_000


def test_throttle_when_requests_are_many_then_limited_by_the_second() -> None:
    clock = FakeClock()
    inner = MemoryChunkStorage(wall_ms=clock.wall_ms)
    storage = ThrottledChunkStorage(inner, clock, requests_per_second=10)

    for _ in range(100):
        storage.exists("a")

    assert 8_800 <= clock.monotonic_ms() <= 10_000


@given(
    rate=st.integers(1, 10_000),
    steps=st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 20_000)), max_size=30),
)
def test_gate_when_used_at_any_times_then_the_rate_is_kept(
    rate: int, steps: list[tuple[int, int]]
) -> None:
    clock = FakeClock()
    gate = RateGate(clock, per_second=rate)
    passed = 0
    for pause_ms, amount in steps:
        clock.advance(pause_ms)
        gate.pass_through(amount)
        # The bytes before this step fit the elapsed time plus one second.
        assert passed * 1_000 <= (clock.monotonic_ms() + 1_001) * rate
        passed += amount


def test_slow_when_asked_then_waits_first() -> None:
    clock = FakeClock()
    storage = SlowChunkStorage(MemoryChunkStorage(wall_ms=clock.wall_ms), clock, delay_ms=30)

    storage.exists("a")

    assert clock.monotonic_ms() == 30
