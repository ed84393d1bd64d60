"""What a failed stream leaves, and that it does not affect copies of the partition."""

from __future__ import annotations

import pytest

from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.segment import SegmentEvent
from rlmm.state.offload_segments import OffloadSegmentStatus
from rsm.segment.metadata import SegmentState
from tests.fakes.effects import Act
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import TIP, TOPIC_ID, World
from tests.log_records import message_of
from tests.unit.rlm.tasks.copying.test_streams import (
    FINISHED,
    SEGMENTS,
    STREAMS,
    UNREACHABLE,
    run,
    watch,
)

_LONG = ProcessSettings(first_pause_ms=60_000)


def _errors(process: Process, prefix: str) -> float | None:
    return process.metrics.registry.get_sample_value(f"{prefix}_errors_total", {"topic": TIP.topic})


def test_stream_when_it_fails_then_called_a_stream_and_counted_as_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    caplog.set_level("INFO", "rlm")
    process.effects.fail("write .log", UNREACHABLE)

    run(world, process)

    said = [message_of(line) for line in caplog.records]
    assert [line for line in said if "fail" in line or "again" in line] == [
        "stream failed",
        "streams succeed again",
    ]
    assert _errors(process, "rlm_stream") == 1
    assert _errors(process, "kafka_server_remote_copy") == 1


def test_stream_when_its_error_is_unexpected_then_its_account_is_ended() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", RuntimeError("no more threads"))

    run(world, process)

    statuses = [each.status for each in offload_segments(world.metadata, TIP)]
    assert statuses == [OffloadSegmentStatus.FAILED, OffloadSegmentStatus.OFFLOADED]


def test_copy_when_a_stream_has_just_failed_then_does_not_wait() -> None:
    world = World(policy=STREAMS, settings=_LONG)
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", UNREACHABLE)
    world.cycle()
    watch(process, times=6)
    failed = process.reports[0].copy_blocked, world.stored()

    world.set_policy(SEGMENTS)
    world.cycle()

    assert failed == (None, [])
    assert world.stored() == [(0, 10)]


def test_stream_when_a_copy_has_just_failed_then_does_not_wait() -> None:
    world = World(policy=SEGMENTS, settings=_LONG)
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", UNREACHABLE)
    world.cycle()

    world.set_policy(STREAMS)
    run(world, process)

    assert world.stored() == [(0, 10)]


@pytest.mark.parametrize("paused", [frozenset(), frozenset({PausableTask.DELETE})])
def test_stream_when_its_unanswered_end_is_written_late_then_stored_once(
    paused: frozenset[PausableTask],
) -> None:
    """The manager fences it before the next segment, even while deletions are paused."""
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    acts: list[Act] = []
    process.effects.recorder = acts.append
    process.effects.fail(FINISHED, UNREACHABLE)
    world.metadata.publish(
        TopicPaused(event_id=world.new_id(), topic="orders", topic_id=TOPIC_ID, tasks=paused)
    )
    run(world, process)
    watch(process)
    (unanswered,) = (each.subject for each in acts if each.name == FINISHED and each.error)
    assert isinstance(unanswered, SegmentEvent)

    late = world.metadata.publish(unanswered)

    assert not late.accepted
    assert world.stored() == [(0, 10)]
    fenced = world.metadata.segment(unanswered.metadata.segment_id)
    assert fenced is not None
    assert fenced.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED
