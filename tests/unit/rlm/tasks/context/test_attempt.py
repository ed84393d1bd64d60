"""An attempt that must end says why: a stop, a lost lead and a passed deadline differ."""

from __future__ import annotations

import pytest

from rlm.tasks.context.attempt import BoundedAttempt
from rsm.segment.errors import FencedError, RetriableError, StoppedError, TieredStorageError
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize(
    ("stopping", "leads", "late_ms", "expected"),
    [
        (True, True, 0, StoppedError),
        (True, False, 1, StoppedError),
        (False, False, 0, FencedError),
        (False, True, 1, RetriableError),
    ],
)
def test_attempt_when_it_may_not_continue_then_the_error_says_why(
    *, stopping: bool, leads: bool, late_ms: int, expected: type[TieredStorageError]
) -> None:
    clock = FakeClock()
    attempt = BoundedAttempt(
        clock, clock.monotonic_ms() - late_ms, lambda: stopping, leads=lambda: leads
    )

    with pytest.raises(expected):
        attempt.check()


def test_attempt_when_nothing_ends_it_then_continues() -> None:
    clock = FakeClock()

    BoundedAttempt(clock, clock.monotonic_ms(), lambda: False).check()
