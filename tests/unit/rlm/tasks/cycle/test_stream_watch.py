"""Which partitions the watch looks at between the cycles."""

from __future__ import annotations

from dataclasses import replace

from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, World

SEGMENTS = replace(KEEP_REMOTE, local_retention_ms=-1)
STREAMS = replace(SEGMENTS, offload_mode=OffloadMode.STREAM, offload_segment_rollover_ms=1_000)


def streamed(process: Process) -> list[TopicIdPartition]:
    return [task.topic_id_partition for task in process.cycle.streamed()]


def test_streamed_when_nothing_streams_then_no_partition_is_looked_at() -> None:
    world = World(partitions=3, policy=SEGMENTS)
    process = world.start()

    world.cycle()

    assert len(process.leadership.led()) == 3
    assert streamed(process) == []


def test_streamed_when_the_mode_changes_then_the_next_cycle_adds_and_removes_them() -> None:
    world = World(partitions=3, policy=SEGMENTS)
    process = world.start()
    world.set_policy(STREAMS)
    world.cycle()
    after_on = streamed(process)

    world.set_policy(SEGMENTS)
    world.cycle()

    assert after_on == list(world.tips)
    assert streamed(process) == []


def test_streamed_when_a_cycle_cannot_look_at_a_partition_then_its_stream_continues() -> None:
    world = World(policy=STREAMS)
    process = world.start()
    world.cycle()
    process.effects.fail("offsets", RetriableError("no answer"))

    process.step()

    assert process.problem is not None
    assert streamed(process) == list(world.tips)


def test_watch_when_the_lead_is_lost_before_the_next_cycle_then_the_broker_is_not_asked() -> None:
    world = World(policy=STREAMS)
    world.produce(10)
    process = world.start()
    world.cycle()
    (task,) = process.cycle.streamed()
    task.leads = False
    process.effects.fail("offsets", AssertionError("asked for a lost partition"))

    process.watch.step()

    assert world.records() == []
