"""Which manager leads by which claim, and what a manager with a superseded claim may do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from threading import Thread
from typing import Any
from uuid import UUID

import pytest

from rlm.tasks.leadership.leadership import Leadership
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.segment import SegmentEvent
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState, Writer
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.world import TIP, World
from tests.log_records import fields_of, message_of
from tests.services.waiting import wait_until

CLAIM = "publish LeadershipClaimed"
COPIED = "publish COPY_SEGMENT_FINISHED"


def writer_of(process: Process, epoch: int = 0) -> Writer:
    return Writer(
        broker_id=process.ports.broker.node_id,
        leader_epoch=epoch,
        incarnation=process.incarnation,
    )


def test_claim_when_made_then_carries_the_lineage_and_is_not_repeated() -> None:
    """R5, R7: one claim per lead."""
    world = World()
    process = world.start()

    world.settle()

    assert process.effects.performed.count(CLAIM) == 1
    assert world.state().owner == writer_of(process)
    assert world.state().lineage == Lineage.of((0, 0))


def test_claim_when_metadata_topic_can_not_be_asked_then_nothing_is_decided() -> None:
    """Scenario 35: no copy before all earlier decisions are read."""
    world = World()
    world.segments(1)
    process = world.start()
    process.effects.fail("end_offsets", RetriableError("topic cannot be reached"), times=50)

    world.cycle()

    assert CLAIM not in process.effects.performed
    assert world.stored() == []


def test_claim_when_it_takes_long_then_one_line_names_what_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 119: the metadata topic needs some time after its leader was cut off."""
    caplog.set_level(logging.INFO, "rlm.tasks.leadership.leadership")

    def lines() -> list[logging.LogRecord]:
        return [r for r in caplog.records if message_of(r) == "claims wait for the metadata topic"]

    def take_long() -> None:
        wait_until(lines, describe="the line")

    world = World(partitions=7)
    process = world.start()
    process.effects.before(CLAIM, take_long)
    leadership = Leadership(
        process.ports, incarnation=process.incarnation, alone=lambda: False, notice_after_ms=1
    )

    leadership.claim_all(leadership.keep_only(process.ports.broker.leadership()))

    (line,) = lines()
    assert fields_of(line)["partitions"] == 7
    assert fields_of(line)["among_them"] == [f"{TIP.topic}:{number}" for number in range(5)]


def test_claim_when_it_takes_no_time_then_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rlm.tasks.leadership.leadership")
    world = World()
    world.start()

    world.settle()

    found = {message_of(record) for record in caplog.records}
    assert "claimed leadership" in found
    assert "claims wait for the metadata topic" not in found


def test_claims_when_two_managers_run_next_to_one_broker_then_last_one_owns() -> None:
    """Scenario 100: the first manager notices the other claim and does not claim again."""
    world = World()
    world.segments(2)
    first = world.start()
    world.cycle()
    second = world.start()
    second.step()
    world.segments(1)
    first.effects.performed.clear()

    world.settle()

    assert world.state().owner == writer_of(second)
    assert set(first.effects.performed) == {"publish ProcessRegistered"}
    assert first.reports[0].is_claimed is False
    assert second.effects.performed.count(COPIED) == 1
    assert violations(world) == []


def test_deletion_when_state_has_changed_since_then_refused() -> None:
    """R7: a deletion that was decided on STARTED does not delete a finished segment."""
    world = World()
    world.segments(1)
    process = world.start()
    world.settle()
    metadata = world.records()[0].metadata
    deletion = SegmentEvent(
        event_id=world.new_id(),
        metadata=replace(
            metadata, state=SegmentState.DELETE_SEGMENT_STARTED, writer=writer_of(process)
        ),
        expected_state=SegmentState.COPY_SEGMENT_STARTED,
    )

    result = world.metadata.publish(deletion)

    assert not result.accepted
    assert world.stored() == [(0, 10)]


def test_deletion_when_by_an_earlier_incarnation_then_refused() -> None:
    """R7: the same broker and epoch are not enough."""
    world = World()
    world.segments(1)
    old = world.start()
    world.settle()
    world.restart()
    world.settle()
    metadata = world.records()[0].metadata
    deletion = SegmentEvent(
        event_id=world.new_id(),
        metadata=replace(
            metadata, state=SegmentState.DELETE_SEGMENT_STARTED, writer=writer_of(old)
        ),
        expected_state=SegmentState.COPY_SEGMENT_FINISHED,
    )

    result = world.metadata.publish(deletion)

    assert not result.accepted
    assert world.stored() == [(0, 10)]


def test_claim_when_of_an_older_epoch_then_refused() -> None:
    """R7: a deposed broker's claim that comes late changes nothing."""
    world = World(brokers=2)
    old = world.start(1)
    world.cycle()
    world.elect(2)
    new = world.start(2)
    world.settle()
    late = LeadershipClaimed(
        event_id=world.new_id(),
        topic_id_partition=TIP,
        writer=writer_of(old),
        lineage=Lineage.of((0, 0)),
    )

    result = world.metadata.publish(late)

    assert not result.accepted
    assert world.state().owner == writer_of(new, epoch=1)


def test_lead_when_broker_has_lost_it_then_reported_as_follower() -> None:
    world = World(brokers=2)
    world.segments(1)
    process = world.start(1)
    world.cycle()

    world.elect(2)
    world.cycle()

    assert [(report.role, report.is_claimed) for report in process.reports] == [("follower", False)]
    assert process.leadership.tasks() == ()


def test_partition_when_its_log_dir_is_offline_then_others_continue() -> None:
    """R21: missing files of an offline log dir are not a trim."""
    world = World(partitions=2)
    for tip in world.tips:
        world.segments(2, tip=tip)
    world.start()
    world.cycle()
    world.leader(world.tips[0]).offline = True

    world.settle()

    assert [world.leader(tip).log_start_offset for tip in world.tips] == [0, 10]
    assert violations(world) == []


@pytest.mark.parametrize("alone", [False, True])
def test_claim_when_overtaken_in_its_epoch_then_repeated_only_once_the_other_is_gone(
    *, alone: bool
) -> None:
    """Scenario 100: a second process does not take the partition permanently."""
    world = World()
    world.segments(1)
    first = world.start()
    world.settle()
    epochs = {TIP: first.leadership.led()[0].leader_epoch}
    first.leadership = Leadership(first.ports, incarnation=first.incarnation, alone=lambda: alone)
    first.leadership.claim_all(first.leadership.keep_only(epochs))
    rival = Leadership(first.ports, incarnation=UUID(int=77), alone=lambda: False)
    rival.claim_all(rival.keep_only(epochs))

    missing = first.leadership.keep_only(epochs)

    assert bool(missing) is alone


def test_claims_when_there_are_threads_then_are_published_side_by_side() -> None:
    """Scenario 89: claiming all partitions takes the time of a few claims, not of all of them."""
    world = World(partitions=4)
    process = world.start()
    blocked = QueuedExecutor()
    leadership = Leadership(
        process.ports, incarnation=process.incarnation, alone=lambda: False, executor=blocked
    )
    claims = leadership.keep_only(dict.fromkeys(world.tips, 0))

    claiming = Thread(target=leadership.claim_all, args=(claims,))
    claiming.start()
    wait_until(lambda: len(blocked.waiting) == 4, 10, "all claims are submitted")
    blocked.run_all()
    claiming.join(10)

    assert set(leadership.led_partitions()) == set(world.tips)


def test_claims_when_a_thread_cannot_be_started_then_those_submitted_end_first() -> None:
    """Otherwise the next cycle would claim a partition whose claim is still being published."""
    world = World(partitions=3)
    process = world.start()

    class Exhausted(QueuedExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            if self.submitted_count == 1:
                raise RuntimeError("no more threads")
            return super().submit(fn, *args, **kwargs)

    pool = Exhausted()
    leadership = Leadership(
        process.ports, incarnation=process.incarnation, alone=lambda: False, executor=pool
    )
    claims = leadership.keep_only(dict.fromkeys(world.tips, 0))
    claiming = Thread(target=leadership.claim_all, args=(claims,))
    claiming.start()
    wait_until(lambda: bool(pool.waiting), 10, "a claim is submitted")
    claiming.join(0.1)
    is_waiting = claiming.is_alive()

    pool.run_all()
    claiming.join(10)

    assert is_waiting
    assert len(leadership.led_partitions()) == 1


def test_claims_when_the_pool_drops_them_at_a_stop_then_they_are_not_awaited() -> None:
    world = World()
    process = world.start()

    class Stopped(QueuedExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args, **kwargs)
            future.cancel()
            return future

    leadership = Leadership(
        process.ports, incarnation=process.incarnation, alone=lambda: False, executor=Stopped()
    )
    claims = leadership.keep_only(dict.fromkeys(world.tips, 0))
    claiming = Thread(target=leadership.claim_all, args=(claims,), daemon=True)
    claiming.start()

    claiming.join(10)

    assert not claiming.is_alive()
