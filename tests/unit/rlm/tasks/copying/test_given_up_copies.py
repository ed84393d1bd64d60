"""How a copy that must end ends: a stop, a lost lead and a passed deadline differ."""

from __future__ import annotations

import pytest

from rlm.tasks.context.attempt import BoundedAttempt
from rsm.segment.errors import FencedError, RetriableError, StoppedError, TieredStorageError
from rsm.segment.metadata import SegmentState
from tests.twins.clock import FakeClock
from tests.twins.world import TIP, World
from tests.unit.rlm.tasks.single_copies import copy_only


@pytest.mark.parametrize(
    ("stopping", "leads", "late_ms", "expected"),
    [
        (True, True, 0, StoppedError),
        (True, False, 1, StoppedError),
        (False, False, 0, FencedError),
        (False, True, 1, RetriableError),
    ],
)
def test_attempt_when_it_may_not_go_on_then_the_error_says_why(
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


@pytest.mark.parametrize("checks", range(1, 6))
def test_copy_when_the_process_stops_then_stopped_and_no_object_is_left(checks: int) -> None:
    world = World()
    world.segments(1)
    process = world.start()
    process.leadership.claim_all(process.leadership.keep_only({TIP: 0}))
    asked_count = 0

    def stopping() -> bool:
        nonlocal asked_count
        asked_count += 1
        return asked_count >= checks

    with pytest.raises(StoppedError, match="the process stops"):
        copy_only(world, process, 0, stopping=stopping)

    assert world.object_names() == []
    assert world.records(SegmentState.COPY_SEGMENT_FINISHED) == []
