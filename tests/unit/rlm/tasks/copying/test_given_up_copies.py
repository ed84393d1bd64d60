"""How a copy ends when the process stops, and after an unexpected error."""

from __future__ import annotations

import pytest

from rlmm.events.policy import TopicPolicy
from rsm.segment.errors import StoppedError
from rsm.segment.metadata import SegmentState
from tests.fakes.process import ProcessSettings
from tests.fakes.world import KEEP_REMOTE, TIP, World
from tests.unit.rlm.tasks.copying.test_streams import STREAMS, run
from tests.unit.rlm.tasks.single_copies import copy_only


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


@pytest.mark.parametrize("policy", [KEEP_REMOTE, STREAMS])
def test_copy_when_its_error_is_unexpected_then_fenced_and_repeated_after_a_pause(
    policy: TopicPolicy,
) -> None:
    """For example when no thread can be started for the upload."""
    world = World(policy=policy, settings=ProcessSettings(first_pause_ms=60_000))
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", RuntimeError("no more threads"))

    run(world, process)
    run(world, process)
    attempts, failure = world.records(), process.copy_failure(TIP)
    (task,) = process.leadership.led()
    given_up = task.given_up()
    world.clock.advance(60_000)
    run(world, process)

    assert len(attempts) == 1
    assert failure is not None
    assert (failure.attempts, failure.is_final) == (1, False)
    assert "no more threads" in failure.error
    assert [each.id for each in given_up] == [attempts[0].metadata.segment_id.id]
    assert world.stored() == [(0, 10)]
    assert task.given_up() == ()
