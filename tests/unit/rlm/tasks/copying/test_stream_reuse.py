"""A stream uses what an unfinished one has sent, whose objects stay until then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rlm.operator.pause import Pausing
from rlmm.events.pause import PausableTask
from rsm.segment.metadata import SegmentState
from tests.fakes.effects import ProcessCrashError
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.unfinished_uploads import UnfinishedStorage
from tests.fakes.world import TIP, World
from tests.unit.rlm.tasks.copying.test_streams import (
    SEGMENTS,
    STREAMS,
    UNREACHABLE,
    log_bytes,
    run,
    stored_bytes,
    watch,
)

DELETED = SegmentState.DELETE_SEGMENT_FINISHED


class Reusing(World):
    """A streamed partition in a store that uses unfinished uploads again."""

    objects: UnfinishedStorage

    def __init__(self, brokers: int = 1) -> None:
        super().__init__(brokers=brokers, policy=STREAMS, storage_type=UnfinishedStorage)
        self.produce(10)

    def interrupted(self, process: Process, interrupt: Callable[[], None]) -> str:
        """Run until a stream has sent all records and is interrupted; return its object's name."""
        known = len(self.objects.asked)

        def once() -> None:
            if len(self.objects.asked) == known + 1:
                interrupt()

        self.objects.at_end = once
        self.cycle()
        while len(self.objects.asked) == known:
            with suppress(ProcessCrashError):
                watch(process, times=1)
        (name,) = self.objects.unfinished
        return name


def fail() -> None:
    raise UNREACHABLE


def reused_bytes(process: Process) -> float:
    sample = "rlm_stream_reused_bytes_total"
    return process.metrics.registry.get_sample_value(sample, {"topic": TIP.topic}) or 0


def test_stream_when_an_attempt_failed_then_the_next_one_uses_its_parts_and_deletes_them() -> None:
    world = Reusing()
    process = world.start()
    name = world.interrupted(process, fail)

    run(world, process)
    world.produce(5)
    run(world, process)

    assert world.objects.asked[1] == (name,)
    assert reused_bytes(process) > 0
    assert world.objects.unfinished == {}
    assert stored_bytes(world) == log_bytes(world)
    assert violations(world) + leftovers(world) == []


def test_stream_when_the_process_died_then_the_next_one_uses_its_parts() -> None:
    world = Reusing()
    process = world.start()
    name = world.interrupted(process, process.effects.crash)

    following = world.restart()
    run(world, following)

    assert world.objects.asked[1] == (name,)
    assert reused_bytes(following) > 0
    assert world.stored() == [(0, 10)]
    assert violations(world) == []


def test_stream_when_the_lead_moved_then_the_next_leader_uses_its_parts() -> None:
    world = Reusing(brokers=2)
    process = world.start(1)
    name = world.interrupted(process, process.effects.crash)

    world.elect(2)
    following = world.start(2)
    run(world, following)

    assert world.objects.asked[1] == (name,)
    assert reused_bytes(following) > 0
    assert world.stored() == [(0, 10)]


def test_stream_when_deletions_are_paused_then_uses_no_parts_and_leaves_none() -> None:
    """Only a deletion discards what a failed attempt leaves."""
    world = Reusing()
    process = world.start()
    world.interrupted(process, fail)

    Pausing(world.metadata, world.new_id).pause(STREAMS, {PausableTask.DELETE})
    run(world, process)

    assert len(world.objects.asked) == 1
    assert reused_bytes(process) == 0
    assert world.stored() == [(0, 10)]


def test_deletion_when_no_stream_has_used_the_parts_then_waits_until_the_deadline() -> None:
    world = Reusing()
    process = world.start()
    name = world.interrupted(process, process.effects.crash)
    following = world.restart()

    for _ in range(3):
        world.cycle()
    awaited = set(world.objects.unfinished)
    (record,) = world.records(SegmentState.DELETE_SEGMENT_STARTED)
    world.clock.advance(record.copy_deadline_ms - world.clock.wall_ms() + 60_000)
    world.cycle()

    assert awaited == {name}
    assert world.objects.unfinished == {}
    assert following.alive


def test_deletion_when_the_topic_is_no_longer_streamed_then_does_not_wait() -> None:
    world = Reusing()
    process = world.start()
    world.interrupted(process, fail)

    world.set_policy(SEGMENTS)
    for _ in range(3):
        world.cycle()

    assert world.objects.unfinished == {}
    assert len(world.records(DELETED)) == 1


def test_stream_when_an_election_cut_records_off_then_only_what_both_logs_have_is_used() -> None:
    """Scenario 28: blocks beyond the end of the new leader's log are never served."""
    world = Reusing(brokers=2)
    common_bytes = len(log_bytes(world))
    world.cut_off.add(2)
    world.produce(10)
    process = world.start(1)
    world.interrupted(process, process.effects.crash)

    world.cut_off.clear()
    world.elect(2)
    world.produce(10)
    following = world.start(2)
    run(world, following)

    assert len(log_bytes(world)) > common_bytes
    assert reused_bytes(following) == common_bytes
    assert stored_bytes(world) == log_bytes(world)
    assert violations(world) == []


def test_stream_when_the_log_lacks_the_epoch_of_the_parts_then_nothing_of_them_is_used() -> None:
    world = Reusing(brokers=2)
    world.cut_off.add(2)
    world.elect(1)
    world.produce(10)
    process = world.start(1)
    world.interrupted(process, process.effects.crash)

    world.cut_off.clear()
    world.elect(2)
    world.produce(10)
    following = world.start(2)
    run(world, following)

    assert world.objects.asked[1] == ()
    assert reused_bytes(following) == 0
    assert stored_bytes(world) == log_bytes(world)
