from __future__ import annotations

from rlm.tasks.context.retry_pauses import LONGEST_PAUSE_MS, RetryPauses
from tests.fakes.clock import FakeClock


def test_pause_when_failures_follow_then_doubles_up_to_the_longest() -> None:
    clock = FakeClock()
    pauses = RetryPauses(clock, first_pause_ms=1000)
    lengths = [pauses.record_failure("a").not_before_ms - clock.monotonic_ms() for _ in range(12)]
    assert lengths[:3] == [1000, 2000, 4000]
    assert lengths[-1] == LONGEST_PAUSE_MS


def test_pause_when_over_then_it_may_be_tried_again() -> None:
    clock = FakeClock()
    pauses = RetryPauses(clock, first_pause_ms=1000)
    pauses.record_failure("a")
    assert pauses.is_pausing("a")
    clock.sleep_ms(1000)
    assert not pauses.is_pausing("a")


def test_pause_when_it_ended_well_then_the_count_begins_again() -> None:
    pauses = RetryPauses(FakeClock(), first_pause_ms=1000)
    pauses.record_failure("a")
    pauses.clear("a")
    assert not pauses.is_pausing("a")
    assert pauses.record_failure("a").count == 1


def test_pause_when_one_key_fails_then_others_do_not_wait() -> None:
    pauses = RetryPauses(FakeClock(), first_pause_ms=1000)
    pauses.record_failure("a")
    assert not pauses.is_pausing("b")


def test_failures_when_nobody_tries_again_for_long_then_can_be_forgotten() -> None:
    """Another leader may have finished the work."""
    clock = FakeClock()
    pauses = RetryPauses(clock, first_pause_ms=1000)
    pauses.record_failure("left")
    clock.sleep_ms(LONGEST_PAUSE_MS)
    pauses.record_failure("tried")
    pauses.forget_stale()
    counts = [pauses.failing_count]
    clock.sleep_ms(1001)
    pauses.forget_stale()
    counts.append(pauses.failing_count)

    assert counts == [2, 1]
    assert pauses.record_failure("tried").count == 2


def test_failures_when_an_attempt_takes_longer_than_the_longest_pause_then_still_counted() -> None:
    """A store that hangs fails seldom; its failures are still counted."""
    clock = FakeClock()
    pauses = RetryPauses(clock, first_pause_ms=1000)
    for _ in range(3):
        pauses.record_failure("slow")
        clock.sleep_ms(3 * LONGEST_PAUSE_MS)

    assert pauses.record_failure("slow").count == 4
