from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm.config.values import UNLIMITED_BYTES_PER_SECOND
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledContent
from rsm.segment.errors import RetriableError
from rsm.spi import CopyAttempt
from tests.fakes.clock import FakeClock

MIB = 1 << 20


class Endless(CopyAttempt):
    """An attempt that continues until the clock passes its deadline."""

    def __init__(self, clock: FakeClock, deadline_ms: int = 1 << 62) -> None:
        self._clock, self._deadline_ms = clock, deadline_ms

    def check(self) -> None:
        if self._clock.monotonic_ms() > self._deadline_ms:
            raise RetriableError("copy given up: past its deadline")


class Content:
    """This number of bytes in views of 1 MiB."""

    def __init__(self, length_bytes: int) -> None:
        self.length_bytes = length_bytes

    def chunks(self) -> Iterator[memoryview]:
        for _ in range(self.length_bytes // MIB):
            yield memoryview(bytes(MIB))


def throttle_of(clock: FakeClock, rate: int, waits: list[int], sharers: int = 1) -> CopyThrottle:
    return CopyThrottle(clock, bytes_per_second=rate, sharers=sharers, waited=waits.append)


@pytest.mark.parametrize("rate", [MIB // 8, MIB, 10 * MIB])
def test_content_when_throttled_then_comes_at_the_rate(rate: int) -> None:
    """Scenario 25: the rate holds to within one piece, and waiting time is counted."""
    clock, waits = FakeClock(), list[int]()
    throttle = throttle_of(clock, rate, waits)
    content = ThrottledContent(source=Content(8 * MIB), throttle=throttle, attempt=Endless(clock))

    copied = sum(len(piece) for piece in content.chunks())

    took_ms = clock.monotonic_ms()
    piece_ms = throttle.piece_bytes * 1000 // rate
    assert copied == 8 * MIB
    assert took_ms == pytest.approx(8 * MIB * 1000 / rate, abs=piece_ms + 50)
    assert sum(waits) == pytest.approx(took_ms, abs=piece_ms + 50)


def test_contents_when_two_are_throttled_then_share_evenly() -> None:
    """Scenario 25: pieces take turns, whichever copy is asked first."""
    clock = FakeClock()
    throttle = throttle_of(clock, MIB, [])
    started = [
        ThrottledContent(
            source=Content(4 * MIB), throttle=throttle, attempt=Endless(clock)
        ).chunks()
        for _ in range(2)
    ]

    for _ in range(16):
        for chunks in started:
            next(chunks)

    assert clock.monotonic_ms() == pytest.approx(
        2 * 16 * throttle.piece_bytes * 1000 / MIB, rel=0.1
    )


def test_wait_when_the_attempt_ends_then_ends_at_once() -> None:
    """Scenario 12: waiting for the rate does not outlast a stop or a deadline."""
    clock = FakeClock()
    throttle = throttle_of(clock, 1_000, [])
    attempt = Endless(clock, deadline_ms=5_000)
    throttle.wait(3_600_000, attempt)

    with pytest.raises(RetriableError, match="deadline"):
        throttle.wait(1, attempt)

    assert clock.monotonic_ms() < 6_000


def test_longest_when_copies_share_then_is_the_time_at_the_least_share() -> None:
    clock = FakeClock()

    assert throttle_of(clock, MIB, [], sharers=10).longest_ms(4 * MIB) == 40_000
    assert throttle_of(clock, UNLIMITED_BYTES_PER_SECOND, []).longest_ms(4 * MIB) == 0
