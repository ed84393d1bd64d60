"""Copies that hang, and segments that cannot be copied: what status shows, and what continues."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from rlm.tasks.context.lanes import Lanes
from rlm.tasks.copying.copy_lane import CopyLanes
from rsm.segment.errors import RetriableError
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.world import INTERVAL_MS, TIP, World
from tests.log_records import message_of

FINISHED = "publish COPY_SEGMENT_FINISHED"
WRITE = "write .log"
HOUR_MS = 3_600_000


class ThreadedProcess(Process):
    """Copies on separate threads: one copy at once, and one spare thread."""

    def make_copies(self) -> CopyLanes:
        self.pool = ThreadPoolExecutor(2)
        return CopyLanes(self.ports, self.attempts(Lanes(self.pool, "copy", limit=1)))


def test_copy_when_the_store_hangs_then_written_off_at_its_deadline_and_copied_again() -> None:
    """Scenario 12: the age rises, a new attempt has a new id, the late one leaves nothing."""
    world = World()
    world.segments(1)
    process = world.start(process_type=ThreadedProcess)
    assert isinstance(process, ThreadedProcess)
    hanging, answer, copied = Event(), Event(), Event()

    def hang_once() -> None:
        if not hanging.is_set():
            hanging.set()
            answer.wait(30)

    with ExitStack() as stack:
        stack.callback(process.pool.shutdown)
        stack.callback(answer.set)
        process.effects.before(WRITE, hang_once)
        world.cycle()
        assert hanging.wait(30)
        (first,) = world.records()
        world.clock.advance(world.settings.attempt_timeout_ms + INTERVAL_MS)
        age_ms = process.copies.oldest_age_ms()
        hanging_before = process.copies.hanging_count()
        process.effects.after(FINISHED, copied.set)
        process.step()
        world.clock.advance(INTERVAL_MS)
        process.step()
        assert copied.wait(30)
        hanging_then = process.copies.hanging_count()
    world.settle()

    (stored,) = [r for r in world.records() if r.metadata.segment_id != first.metadata.segment_id]
    assert age_ms > world.settings.attempt_timeout_ms
    assert (hanging_before, hanging_then, process.copies.hanging_count()) == (0, 1, 0)
    assert world.stored() == [(0, 10)]
    assert stored.metadata.state.name == "COPY_SEGMENT_FINISHED"
    assert len(world.object_names()) == 2
    assert violations(world) == []


def test_copy_when_a_segment_is_corrupt_then_that_partition_stops_and_says_so() -> None:
    """A bad CRC in the middle: nothing of it or after it is stored or trimmed; others continue."""
    world = World(partitions=2)
    other = world.tips[1]
    for tip in world.tips:
        world.segments(4, tip=tip)
    bad = world.leader().files[1].batches
    bad[0] = bad[0][:-1] + bytes((bad[0][-1] ^ 1,))
    process = world.start()

    for _ in range(6):
        world.cycle()

    report = next(r for r in process.reports if r.topic_id_partition == TIP)
    blocked = report.copy_blocked
    assert world.stored() == [(0, 10)]
    assert world.leader().log_start_offset == 10
    assert (blocked and blocked.reason, blocked and blocked.values["base_offset"]) == (
        "corrupt",
        10,
    )
    assert report.trim_blocked is not None
    assert report.trim_blocked.reason == "not_stored"
    assert world.stored(tip=other) == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert violations(world) == []


def test_copy_when_it_keeps_failing_then_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each change of state is one log line; a cycle without a change logs nothing."""
    world = World()
    world.segments(1)
    process = world.start()
    caplog.set_level("INFO", "rlm")
    process.effects.fail(WRITE, RetriableError("store cannot be reached"), times=5)

    world.settle()

    said = [line for line in map(message_of, caplog.records) if "cop" in line]
    assert said == ["copy failed", "copied segment", "copies succeed again"]
    assert process.reports[0].copy_blocked is None


def test_failure_when_the_lead_is_lost_and_comes_back_then_is_forgotten() -> None:
    """A failure from an earlier lead says nothing about the store now."""
    world = World(brokers=2)
    world.segments(1)
    process = world.start()
    process.effects.fail(WRITE, RetriableError("store cannot be reached"), times=5)
    world.cycle()
    failed = process.copy_failure(TIP)
    world.elect(2)
    world.cycle()

    assert failed is not None
    assert process.copy_failure(TIP) is None


def test_copy_when_a_segment_stays_corrupt_then_is_tried_ever_less() -> None:
    """Each attempt reads and stores all bytes before the corrupt ones."""
    world = World()
    world.segments(3)
    bad = world.leader().files[1].batches
    bad[0] = bad[0][:-1] + bytes((bad[0][-1] ^ 1,))
    process = world.start()
    for _ in range(8 * HOUR_MS // (4 * INTERVAL_MS)):
        world.clock.advance(3 * INTERVAL_MS)  # cycles without an attempt log nothing
        world.cycle()

    assert process.effects.performed.count(WRITE) < 30
