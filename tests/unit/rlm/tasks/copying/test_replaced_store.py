"""Another store answers at the same address while the manager copies, as after a lost mount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rlm.tasks.context.ports import Ports
from rlm.tasks.context.store_witness import StoreWitness, WrongStoreError
from rlmm.events.policy import TopicPolicy
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import ByteRange
from tests.fakes.process import FakeSystems, Process
from tests.fakes.world import KEEP_REMOTE, World
from tests.unit.rlm.tasks.copying.test_streams import STREAMS, watch

COPIED = [(0, 10), (10, 20), (20, 30)]
FINISHED = "publish COPY_SEGMENT_FINISHED"
_WHOLE = ByteRange(start_position=0, end_position=1 << 40)


class WitnessedProcess(Process):
    """Accepts only the store that has the earlier segments."""

    def _make_ports(self, external: FakeSystems) -> Ports:
        ports = super()._make_ports(external)
        return replace(ports, witness=StoreWitness(external.objects, ports.metadata))


def stored_world(policy: TopicPolicy = KEEP_REMOTE) -> tuple[World, Process]:
    """Return a world with some stored segments."""
    world = World(policy=replace(policy, local_retention_ms=-1), process_type=WitnessedProcess)
    process = world.start()
    for _ in COPIED:
        world.segments(1)
        run(world, process)
    assert world.stored() == COPIED
    return world, process


def run(world: World, process: Process) -> None:
    for _ in range(3):
        world.cycle()
        watch(process)


def empty(world: World) -> Callable[[], None]:
    """Replace the store with an empty one; return how to bring it back."""
    objects = {name: world.objects.read_range(name, _WHOLE) for name in world.object_names()}
    for name in objects:
        world.objects.delete(name)

    def bring_back() -> None:
        for name, content in objects.items():
            world.objects.create(name)
            world.objects.append(name, 0, content)

    return bring_back


@pytest.mark.parametrize("policy", [KEEP_REMOTE, STREAMS])
def test_copy_when_the_store_is_replaced_while_it_runs_then_not_finished(
    policy: TopicPolicy,
) -> None:
    """**Data loss:** the local log would be trimmed, but the first store lacks the segment."""
    world, process = stored_world(policy)
    world.segments(2)
    returns: list[Callable[[], None]] = []
    process.effects.after("publish COPY_SEGMENT_STARTED", lambda: returns.append(empty(world)))

    run(world, process)
    during = world.stored(), world.object_names(), process.problem
    (bring_back,) = returns
    bring_back()
    run(world, process)
    run(world, process)

    assert during[:2] == (COPIED, [])
    assert isinstance(during[2], WrongStoreError)
    finished = [each.metadata for each in world.records(SegmentState.COPY_SEGMENT_FINISHED)]
    assert finished[-1].offsets.end_offset == 50
    assert {key for each in finished for key in each.object_keys} == set(world.object_names())


def test_copies_when_the_store_is_replaced_after_the_first_then_the_second_is_not_finished() -> (
    None
):
    world, process = stored_world()
    world.segments(3)
    returns: list[Callable[[], None]] = []
    process.effects.after(FINISHED, lambda: returns.append(empty(world)))

    run(world, process)

    assert world.stored() == [*COPIED, (30, 40)]
    assert world.object_names() == []


def test_copy_when_all_earlier_segments_have_expired_then_finished() -> None:
    world, process = stored_world(replace(KEEP_REMOTE, retention_ms=3_600_000))
    world.clock.advance(2 * 3_600_000)
    run(world, process)
    expired = world.object_names()
    world.segments(1)

    run(world, process)

    assert expired == []
    assert world.stored()[-1] == (30, 40)


def test_copy_when_the_manager_is_new_and_nothing_is_stored_then_finished() -> None:
    world = World(process_type=WitnessedProcess)
    world.segments(1)
    world.start()

    world.cycle()

    assert world.stored() == [(0, 10)]
