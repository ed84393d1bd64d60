"""What is copied while a cycle looks at its partition."""

from __future__ import annotations

from collections.abc import Callable

from rlm.source.log_source import LocalLog
from rlm.tasks.lanes import Lanes
from rsm.segment.ids import TopicIdPartition
from tests.twins.held_executor import HeldExecutor
from tests.twins.log_source import MemoryLogSource
from tests.twins.process import Outside, Process
from tests.twins.world import World


class SlowDisk(MemoryLogSource):
    """Others go on while it lists a log."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        self.meanwhile()
        return super().local_log(topic_id_partition)


class HeldProcess(Process):
    """Copies when it is told to, and reads a slow disk."""

    def make_source(self, outside: Outside) -> SlowDisk:
        assert isinstance(outside.source, MemoryLogSource)
        self.disk = SlowDisk(outside.source._replicas)
        return self.disk

    def make_lanes(self, name: str) -> Lanes:
        self.jobs = {**getattr(self, "jobs", {}), name: HeldExecutor()}
        return Lanes(self.jobs[name], name)


def test_copy_when_it_ends_while_a_cycle_looks_then_is_not_made_again() -> None:
    """Scenarios 100, 104: one claim stores each offset once."""
    world = World()
    world.segments(2)
    process = world.start(process_type=HeldProcess)
    assert isinstance(process, HeldProcess)
    copies = process.jobs["copy"]
    world.cycle()
    waiting = len(copies.waiting)
    process.disk.meanwhile = copies.run_all

    world.cycle()
    world.cycle()

    assert waiting == 1
    assert world.stored() == [(0, 10), (10, 20)]
