"""More active partitions than streams that may be open: they share the streams."""

from __future__ import annotations

from dataclasses import replace

from rlm.policy.stream.permit import OPEN_BYTES
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.copying.stream_lane import StreamLanes
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.process import Process
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.world import World
from tests.segment_builder import build_batch, record
from tests.unit.rlm.tasks.copying.test_stream_pace import STREAMS
from tests.unit.rlm.tasks.copying.test_streams import SEGMENTS, watch
from tests.unit.rlm.tasks.copying.test_streams import STREAMS as SHORT_STREAMS

_ROLLOVER_MS = 60_000
_LOOK_MS = 5_000


class _OneStream(Process):
    """A manager with memory for one open segment."""

    def make_lanes(self, name: str) -> Lanes:
        return Lanes(SynchronousExecutor(), name, limit=1)


class _Busy(Process):
    """A manager whose streams wait in the queue until the test runs them."""

    def make_streams(self) -> StreamLanes:
        self.queue = QueuedExecutor()
        context = self.attempts(Lanes(self.queue, "stream", limit=1))
        return self.streams_type(self.ports, context)


def _produce(world: World, partition: int) -> None:
    tip = world.tips[partition]
    leader = world.leader(tip)
    content = [record(leader.end_offset, bytes(OPEN_BYTES), timestamp_ms=world.clock.wall_ms())]
    leader.append(build_batch(content, leader_epoch=leader.leader_epoch or 0))
    world.commit(tip=tip)


def test_stream_when_another_partition_has_8_mib_then_stays_open() -> None:
    """Otherwise partitions would take the stream from each other after each 8 MiB."""
    policy = replace(STREAMS, offload_segment_rollover_ms=_ROLLOVER_MS)
    world = World(partitions=2, policy=policy, process_type=_OneStream)
    process = world.start()
    ended_ms: list[int] = []
    _produce(world, 0)
    world.cycle()
    opened_ms = world.clock.monotonic_ms()

    _produce(world, 1)
    for _ in range(2):
        process.effects.before("offsets", lambda: None)
    for _ in range(500):
        process.effects.before("offsets", process.watch.step)
    process.effects.after(
        "publish COPY_SEGMENT_FINISHED",
        lambda: ended_ms.append(world.clock.monotonic_ms() - opened_ms),
    )
    process.watch.step()

    assert ended_ms[0] >= _ROLLOVER_MS - _LOOK_MS


def test_stream_when_forbidden_while_it_waits_in_the_queue_then_does_not_begin() -> None:
    world = World(policy=SHORT_STREAMS, process_type=_Busy)
    world.segments(1)
    process = world.start()
    assert isinstance(process, _Busy)
    world.cycle()
    watch(process)
    waiting = process.streams.is_busy(world.tips[0])

    world.set_policy(SEGMENTS)
    world.cycle()
    process.queue.run_all()

    assert waiting
    assert "publish OffloadSegmentChanged" not in process.effects.performed
