"""Plans that are carried out after the world has changed: jobs wait, and disks are slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rlm.facts.local_log import LocalLog
from rlm.operator.pause import Pausing
from rlm.tasks.context.lanes import Lanes
from rlmm.events.pause import PausableTask
from rlmm.events.policy import PolicyState
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.fakes.invariants import violations
from tests.fakes.log_source import MemoryLogSource
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.world import KEEP_REMOTE, World
from tests.simulation.processes import LaggingMetadata
from tests.unit.rlm.tasks.deleting.test_leases import take_lease

HOUR_MS = 3_600_000
FINISHED = "publish COPY_SEGMENT_FINISHED"
KEEP_LOCAL = replace(KEEP_REMOTE, local_retention_ms=-1)
ONE_HOUR = replace(KEEP_REMOTE, retention_ms=HOUR_MS)


class SlowDisk(MemoryLogSource):
    """A slow disk: `meanwhile` runs while it lists a log."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        self.meanwhile()
        return super().local_log(topic_id_partition)


class QueuedProcess(Process):
    """Copies and deletes on request; its disk is slow, its metadata may be older than the topic."""

    metadata_type = LaggingMetadata

    def make_source(self, external: FakeSystems) -> SlowDisk:
        assert isinstance(external.source, MemoryLogSource)
        self.disk = SlowDisk(external.source._replicas)
        return self.disk

    def make_metadata(self, external: FakeSystems) -> FreshMetadata:
        self.metadata = super().make_metadata(external)
        self.metadata.end_offset = lambda: external.topic.end_offset(0)
        return self.metadata

    def make_lanes(self, name: str) -> Lanes:
        self.jobs = {**getattr(self, "jobs", {}), name: QueuedExecutor()}
        return Lanes(self.jobs[name], name)

    def run_all(self) -> None:
        for jobs in self.jobs.values():
            jobs.run_all()


def started(world: World) -> QueuedProcess:
    process = world.start(process_type=QueuedProcess)
    assert isinstance(process, QueuedProcess)
    return process


def settle(world: World, process: QueuedProcess) -> None:
    for _ in range(4):
        world.cycle()
        process.run_all()


def test_copies_when_somebody_deletes_what_waits_in_the_queue_then_it_is_not_brought_back() -> None:
    """Records that are deleted before their copy begins are a gap, as for any later plan."""
    world = World(policy=KEEP_LOCAL)
    world.segments(4)
    process = world.start()
    process.effects.after(FINISHED, lambda: world.leader().move_start(30))

    world.settle()

    assert world.stored() == [(0, 10), (30, 40)]
    assert [(gap.offsets.start_offset, gap.offsets.end_offset) for gap in world.state().gaps] == [
        (10, 30)
    ]


def test_copy_when_it_ends_while_a_cycle_looks_then_is_not_made_again() -> None:
    """Scenario 104: one claim stores each offset once."""
    world = World()
    world.segments(2)
    process = started(world)
    world.cycle()
    waiting = len(process.jobs["copy"].waiting)
    process.disk.meanwhile = process.jobs["copy"].run_all

    world.cycle()
    world.cycle()

    assert waiting == 1
    assert world.stored() == [(0, 10), (10, 20)]


def test_copy_when_the_answer_to_its_end_was_lost_then_is_not_made_again() -> None:
    """Scenario 104: before the first byte, the process reads the metadata that it lacks."""
    world = World(policy=KEEP_LOCAL)
    world.segments(2)
    process = started(world)
    world.cycle()
    process.jobs["expiry"].run_all()
    process.effects.lose_answer(FINISHED, RetriableError("answer lost"))
    process.jobs["copy"].run()
    assert isinstance(process.metadata, LaggingMetadata)
    process.metadata.lags = lambda: True
    world.cycle()
    process.metadata.lags = None

    process.run_all()
    settle(world, process)

    assert world.stored() == [(0, 10), (10, 20)]
    assert violations(world) == []


def test_copies_when_tiering_ends_meanwhile_then_the_one_under_way_is_the_last() -> None:
    """Scenario 77."""
    world = World(policy=KEEP_LOCAL)
    world.segments(4)
    process = started(world)
    world.cycle()
    process.jobs["copy"].run()
    world.set_policy(replace(KEEP_LOCAL, state=PolicyState.DISABLED))
    world.cycle()

    process.run_all()

    assert world.stored() == [(0, 10)]


def test_deletions_when_tiering_begins_again_meanwhile_then_nothing_stored_is_taken() -> None:
    """Scenario 78: the topic is enabled again while deletions still wait in the queue."""
    world = World(policy=KEEP_LOCAL)
    world.segments(5)
    process = started(world)
    settle(world, process)
    world.set_policy(replace(KEEP_LOCAL, state=PolicyState.DISABLED, delete_remote=True))
    world.cycle()
    waiting = len(process.jobs["expiry"].waiting)
    world.set_policy(KEEP_REMOTE)
    world.cycle()
    world.cycle()
    local_start_offset = world.leader().log_start_offset

    settle(world, process)

    assert (waiting, local_start_offset) == (1, 0)
    assert world.stored() == [(0, 10), (10, 20), (20, 30), (30, 40), (40, 50)]
    assert world.leader().log_start_offset == 40
    assert violations(world) == []


def test_trims_when_a_look_at_all_partitions_takes_long_then_none_waits_till_it_is_too_old() -> (
    None
):
    """R2: a plan that is too old is dropped, so with many partitions trims must not come last."""
    world = World(partitions=8)
    for tip in world.tips:
        world.segments(3, tip=tip)
    process = started(world)
    process.disk.meanwhile = lambda: world.clock.advance(1_000)

    settle(world, process)

    assert [world.leader(tip).log_start_offset for tip in world.tips] == [20] * 8
    assert violations(world) == []


def keep_all(world: World) -> None:
    world.set_policy(replace(ONE_HOUR, retention_ms=-1))


def pause(world: World) -> None:
    Pausing(world.metadata, world.new_id).pause(ONE_HOUR, {PausableTask.DELETE})


def lease(world: World) -> None:
    take_lease(world, 0, 10)


@pytest.mark.parametrize("change", [keep_all, pause, lease])
def test_expiry_when_something_else_is_wanted_meanwhile_then_nothing_expires(
    change: Callable[[World], None],
) -> None:
    """Only a log start that moves makes the records unreadable."""
    world = World(policy=ONE_HOUR)
    world.segments(3)
    process = started(world)
    settle(world, process)
    world.clock.advance(4 * HOUR_MS)
    world.cycle()
    waiting = len(process.jobs["expiry"].waiting)
    change(world)

    process.run_all()
    settle(world, process)

    assert waiting == 1
    assert world.state().log_start_offset == 0
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
