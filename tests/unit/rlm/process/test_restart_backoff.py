from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rlm.process.restart_backoff import BackoffSettings, RestartBackoff

SETTINGS = BackoffSettings(initial_ms=500, max_ms=30_000, stable_ms=60_000)


@given(seed=st.integers(), failure_count=st.integers(1, 100))
def test_pause_when_failing_on_then_doubles_with_jitter_up_to_the_longest(
    seed: int, failure_count: int
) -> None:
    backoff = RestartBackoff(SETTINGS, Random(seed))

    pauses_ms = [backoff.next_pause_ms(0) for _ in range(failure_count)]

    for count, pause_ms in enumerate(pauses_ms):
        nominal_ms = min(500 * 2**count, 30_000)
        assert 0.8 * nominal_ms - 1 <= pause_ms <= min(30_000, 1.2 * nominal_ms + 1)


def test_pause_when_it_was_up_long_enough_then_begins_again() -> None:
    backoff = RestartBackoff(SETTINGS, Random(1))
    for _ in range(10):
        backoff.next_pause_ms(0)

    assert backoff.next_pause_ms(60_000) <= 600
