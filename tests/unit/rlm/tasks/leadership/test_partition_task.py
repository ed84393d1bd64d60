"""What the manager remembers of a led partition, and when it forgets that."""

from __future__ import annotations

import logging
from uuid import UUID

from rlm.broker.errors import PartitionGoneError
from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.retry_pauses import BackOff
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlm.tasks.leadership.partition_task import CopyHistory, PartitionTask
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import Writer
from tests.fakes.clock import FakeClock
from tests.fakes.world import TIP, World

WRITE = "write .log"
PAUSE_MS = 1_000
REFUSED = RetriableError("store refuses")


class Copies:
    """The copies of one partition."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.history = CopyHistory()
        self._back_off = BackOff(self.clock, first_pause_ms=PAUSE_MS)

    def fail(self, error: TieredStorageError, base_offset: int = 0) -> int:
        failure = self.history.record_failure(
            error, base_offset=base_offset, back_off=self._back_off
        )
        return failure.attempts

    def allows(self, base_offset: int = 0) -> bool:
        return self.history.allows(base_offset, self.clock.monotonic_ms())


def task(gone_log: LogOnce | None = None) -> PartitionTask:
    writer = Writer(broker_id=1, leader_epoch=0, incarnation=UUID(int=1))
    return PartitionTask(
        PartitionLead(topic_id_partition=TIP, writer=writer), gone_log or LogOnce()
    )


def test_copies_when_one_failed_then_wait_for_its_pause() -> None:
    copies = Copies()
    copies.fail(REFUSED)
    at_once = copies.allows()
    copies.clock.advance(PAUSE_MS)

    assert (at_once, copies.allows()) == (False, True)


def test_copies_when_a_segment_is_corrupt_then_its_attempts_are_counted_apart() -> None:
    copies = Copies()

    attempts = [copies.fail(error) for error in (REFUSED, REFUSED, CorruptError("bad CRC"))]

    assert attempts == [1, 2, 1]
    assert copies.history.failure is not None
    assert copies.history.failure.is_corrupt


def test_copies_when_a_segment_cannot_be_stored_then_stop_while_it_is_the_first() -> None:
    copies = Copies()
    copies.fail(UnsupportedError("too large"), base_offset=10)
    copies.clock.advance(PAUSE_MS)

    assert (copies.allows(10), copies.allows(20)) == (False, True)


def test_copies_when_one_succeeds_then_no_failure_is_known() -> None:
    copies = Copies()
    copies.fail(UnsupportedError("too large"))
    copies.fail(CorruptError("bad CRC"))

    last = copies.history.record_success()

    assert last is not None
    assert (copies.history.failure, copies.allows()) == (None, True)
    assert copies.history.record_success() is None


def test_loss_when_proven_then_taken_once() -> None:
    led = task()
    segment_id = RemoteLogSegmentId(topic_id_partition=TIP, id=UUID(int=7))
    led.prove_losses({segment_id})

    assert led.take_proven_losses() == {segment_id}
    assert led.take_proven_losses() == frozenset()


def test_problem_when_it_lasts_then_is_a_warning_once_for_each_subject() -> None:
    led = task()

    levels = [led.log_level(subject, "waits", REFUSED) for subject in ("copy", "copy", "trim")]

    assert levels == [logging.WARNING, logging.DEBUG, logging.WARNING]


def test_problem_when_the_topic_is_gone_then_is_logged_once_for_all_its_partitions() -> None:
    shared = LogOnce()
    gone = PartitionGoneError("the broker has no such topic or partition")

    levels = [task(shared).log_level("copy", "copy failed", gone) for _ in range(2)]

    assert levels == [logging.INFO, logging.DEBUG]


def test_keep_only_when_a_topic_is_gone_then_forgets_what_was_logged_of_it() -> None:
    world = World()
    world.segments(1)
    process = world.start()
    world.cycle()
    leadership = process.leadership
    (led,) = leadership.led()
    gone = PartitionGoneError("the broker has no such topic or partition")

    levels = [led.log_level("copy", "copy failed", gone)]
    for _ in range(2):
        leadership.keep_only({})
        levels.append(led.log_level("copy", "copy failed", gone))

    assert levels == [logging.INFO, logging.DEBUG, logging.INFO]


def test_task_when_the_broker_leads_in_a_new_epoch_then_another_one_knows_nothing_of_it() -> None:
    world = World()
    world.segments(1)
    process = world.start()
    process.effects.fail(WRITE, REFUSED)
    world.cycle()
    (old,) = process.leadership.led()

    (new,) = process.leadership.keep_only({TIP: old.leader_epoch + 1})

    assert old.copying.failure is not None
    assert (old.leads, new.leads) == (False, False)
    assert new.copying.failure is None
    assert process.leadership.tasks() == (new,)


def test_copy_when_its_lead_is_lost_then_stays_in_flight_until_it_ends() -> None:
    """The partition's next task must not count the copy as abandoned while it may write."""
    world = World()
    world.segments(1)
    process = world.start()
    in_flight = []

    def lose_the_lead() -> None:
        process.leadership.keep_only({})
        in_flight.append(process.copies.in_flight(TIP))

    process.effects.before(WRITE, lose_the_lead)
    world.cycle()

    (attempt,) = world.records()
    assert in_flight == [{attempt.metadata.segment_id.id}]
    assert process.copies.in_flight(TIP) == frozenset()
