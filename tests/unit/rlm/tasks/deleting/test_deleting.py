"""When objects are deleted: after every gateway knows of the deletion, and once more later."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from rlm.policy.view import PolicyLimits
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.deleting.expiry_lane import ExpiryLanes
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.gateways import gateway_at
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import KEEP_REMOTE, World

MINUTE_MS = 60_000
WEEK_MS = 7 * 24 * 60 * MINUTE_MS
TEN_MINUTES = replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS)
REFUSED = RetriableError("no right to delete")
MOST_FAILING = 2
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED


class ForgetfulProcess(Process):
    """A process that retries the deletions of two segments at most."""

    def _make_expiries(self) -> ExpiryLanes:
        expirer = Expirer(
            self.ports,
            metrics=self.metrics,
            max_attempts=100,
            first_pause_ms=1_000,
            max_failing=MOST_FAILING,
        )
        self.expirer = expirer
        return ExpiryLanes(
            self.ports,
            lanes=Lanes(SynchronousExecutor(), "expiry"),
            expirer=expirer,
            stopping=self.stopping,
        )


def test_objects_when_a_gateway_does_not_know_of_their_deletion_then_stay_until_it_does() -> None:
    """R15, scenario 63: an expired segment is never reported as missing."""
    world = World(policy=TEN_MINUTES)
    world.segments(2)
    process = world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    for _ in range(8):
        gateway_at(world, 0)
        world.clock.advance(1_000)
        process.step()
    started = [r.metadata.offsets.start_offset for r in world.records(DELETE_STARTED)]
    while_behind = process.effects.performed.count("delete .log")
    gateway_at(world, world.topic.end_offset(0))

    process.step()

    assert (started, while_behind) == ([0, 10], 0)
    assert process.effects.performed.count("delete .log") == 2


def test_objects_when_the_gateway_that_lags_is_gone_then_are_deleted() -> None:
    """R15: a dead gateway blocks deletions only until it counts as gone."""
    world = World(policy=TEN_MINUTES)
    world.segments(2)
    world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    gateway_at(world, 0)

    world.settle()

    assert world.stored() == [(20, 30)]
    assert violations(world) + leftovers(world) == []


def test_deletions_when_nothing_can_be_deleted_then_letters_grow_and_memory_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 110: copies continue; dead letters record the backlog; the log has one line."""
    world = World(policy=TEN_MINUTES, process_type=ForgetfulProcess)
    world.segments(6)
    process = world.start()
    world.settle()
    for record in world.records():
        process.effects.refuse("delete .log", record.metadata.objects[0].key, REFUSED)
    world.clock.advance(20 * MINUTE_MS)
    world.segments(2)

    with caplog.at_level(logging.ERROR):
        world.settle()

    assert isinstance(process, ForgetfulProcess)
    assert process.expirer._pauses.failing_count <= MOST_FAILING
    assert len(world.dead_letters.published) == 6 - MOST_FAILING
    assert (60, 70) in world.stored()
    assert len([r for r in caplog.records if r.name == "rlm.tasks.deleting.expirer"]) == 1


def test_deletion_when_others_have_finished_what_failed_here_then_has_all_its_attempts() -> None:
    """Scenario 73: failures of an earlier lead do not count."""
    world = World(policy=TEN_MINUTES, process_type=ForgetfulProcess)
    world.segments(1)
    process = world.start()
    assert isinstance(process, ForgetfulProcess)
    world.settle()
    for _ in range(MOST_FAILING + 1):
        process.expirer._pauses.record_failure(world.new_id())
    process.effects.fail("delete .log", REFUSED)
    world.clock.advance(20 * MINUTE_MS)
    world.segments(2)

    world.settle()

    assert process.effects.performed.count("delete .log") > 0
    assert world.dead_letters.published == []
    assert leftovers(world) == []


def test_copy_when_it_ends_after_its_deletion_then_its_objects_are_swept() -> None:
    """Scenario 106: before the purge, when no late object can come, they are deleted once more."""
    limits = PolicyLimits(local_trim_min_age_ms=0, orphan_grace_ms=10 * MINUTE_MS)
    world = World(settings=ProcessSettings(limits=limits))
    world.segments(1)
    process = world.start()
    process.effects.fail("write .meta", REFUSED)
    process.effects.fail("delete .log", REFUSED)
    world.cycle()
    (attempt,) = world.records(SegmentState.COPY_SEGMENT_STARTED)
    world.settle()
    world.objects.create(attempt.metadata.objects[0].key)

    world.clock.advance(30 * MINUTE_MS)
    world.settle()

    assert world.metadata.segment(attempt.metadata.segment_id) is None
    assert violations(world) + leftovers(world) == []


def lost_world(limits: PolicyLimits) -> World:
    """Cut off broker 1's stored records from 20 on; a client deletes all records of the new log."""
    world = World(brokers=2, settings=ProcessSettings(limits=limits))
    world.segments(2)
    world.cut_off.add(2)
    world.segments(3)
    world.start(1)
    world.settle()
    world.cut_off = {1}
    world.elect(2)
    world.start(2)
    world.segments(4)
    world.settle()
    world.leader().move_start(60)
    world.commit()
    world.request_log_start(60)
    world.settle()
    return world


def test_segments_when_cut_off_and_below_the_log_start_then_stay_for_the_grace() -> None:
    """R5: the client deleted records of its own log, not of the lost one."""
    world = lost_world(PolicyLimits(local_trim_min_age_ms=0))
    before = world.stored()
    world.clock.advance(8 * 24 * 60 * MINUTE_MS)
    world.settle()

    assert [each for each in before if each[0] < 50] == [(20, 30), (30, 40), (40, 50)]
    assert [each for each in world.stored() if each[0] < 50] == []


def test_segments_when_cut_off_and_past_the_retention_then_go_with_the_rest() -> None:
    world = lost_world(PolicyLimits(local_trim_min_age_ms=0))
    world.set_policy(TEN_MINUTES)
    world.clock.advance(20 * MINUTE_MS)

    world.settle()

    assert world.stored() == []


def test_forget_when_the_store_keeps_leftovers_of_one_copy_then_the_others_are_forgotten() -> None:
    """Scenario 106: the objects of a copy are deleted a second time, until they are gone."""
    world = World(policy=KEEP_REMOTE)
    process = world.start()
    for _ in range(2):
        process.effects.fail("write .meta", RetriableError("store refuses"))
    world.segments(1)
    world.settle()
    gone = [each.metadata for each in world.records(SegmentState.DELETE_SEGMENT_FINISHED)]
    first, second = (each.segment_id for each in gone)
    process.effects.refuse("delete .log", gone[0].objects[0].key, REFUSED)

    world.clock.advance(WEEK_MS)
    world.cycle()
    left = [each.metadata.segment_id for each in world.records()]

    assert first in left
    assert second not in left
