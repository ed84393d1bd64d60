"""Which segments are copied and when, and what a failed copy leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.events.policy import PolicyState
from rsm.segment.batches.batch import scan_batches
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType
from tests.fakes.invariants import leftovers, violations
from tests.fakes.world import KEEP_REMOTE, TIP, World
from tests.segment_builder import build_batches

KEEP_LOCAL = replace(KEEP_REMOTE, local_retention_ms=-1)
UNREACHABLE = RetriableError("store cannot be reached")
STARTED = "publish COPY_SEGMENT_STARTED"
FINISHED = "publish COPY_SEGMENT_FINISHED"


def test_copy_when_three_rolled_then_exactly_these_in_order_and_no_lag() -> None:
    """Scenario 1: the active segment stays untouched, the lag is 0."""
    world = World(policy=KEEP_LOCAL)
    world.segments(3)
    world.produce(3)
    process = world.start()

    world.settle()

    starts = [r.metadata.offsets.start_offset for r in world.records()]
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert starts == [0, 10, 20]
    assert (process.reports[0].lag_segments, process.reports[0].lag_bytes) == (0, 0)
    assert violations(world) + leftovers(world) == []


def test_copy_when_done_then_log_object_is_the_file_byte_for_byte() -> None:
    """Scenario 1: the stored bytes are the broker's."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    world.start()

    world.settle()

    name = world.records()[0].metadata.objects[0].key
    whole = ByteRange(start_position=0, end_position=1 << 20)
    assert world.objects.read_range(name, whole) == world.leader().files[0].content


def test_copy_when_transaction_is_open_then_its_segment_waits_for_the_end() -> None:
    """Scenario 2: copied in the first cycle after the transaction ends."""
    world = World(policy=KEEP_LOCAL)
    world.segments(2)
    world.leader().open_transaction_offset = 15
    process = world.start()
    world.settle()
    waiting = (world.stored(), process.reports[0].lag_segments)

    world.leader().open_transaction_offset = None
    world.cycle()

    assert waiting == ([(0, 10)], 1)
    assert world.stored() == [(0, 10), (10, 20)]


def test_copy_when_segment_is_above_the_high_watermark_then_waits() -> None:
    """Scenario 3: a rolled segment is not copied before it is committed."""
    world = World(policy=KEEP_LOCAL)
    world.produce(commit=False)
    world.roll()
    world.commit(9)
    world.start()
    world.settle()
    waiting = world.stored()

    world.commit()
    world.cycle()

    assert waiting == []
    assert world.stored() == [(0, 10)]


def test_copy_when_log_starts_inside_a_segment_then_that_one_is_the_first() -> None:
    """Scenario 4: records below the log start are stored with the segment, and are not readable."""
    world = World(policy=KEEP_LOCAL)
    world.segments(3)
    world.leader().move_start(15)
    world.leader().delete_old_files()
    world.started_at_offset[TIP] = 15
    world.start()

    world.settle()

    assert world.stored() == [(10, 20), (20, 30)]
    assert world.state().log_start_offset == 15
    assert world.metadata.remote_log_segment_metadata(TIP, 14, leader_epoch=0) is None
    assert violations(world) == []


def test_copy_when_lead_is_lost_meanwhile_then_never_finished_and_new_leader_copies() -> None:
    """Scenario 5; R21: the old owner publishes nothing more, the new one uses a new id."""
    world = World(brokers=2, policy=KEEP_LOCAL)
    world.segments(1)
    old, new = world.start(1), world.start(2)
    old.effects.after("write .log", lambda: world.elect(2))
    world.cycle()
    abandoned = world.records()[0].metadata

    world.settle()

    assert FINISHED not in old.effects.performed
    assert FINISHED in new.effects.performed
    assert world.stored() == [(0, 10)]
    finished = world.records(SegmentState.COPY_SEGMENT_FINISHED)[0].metadata
    assert finished.segment_id != abandoned.segment_id
    assert violations(world) == []


def test_copy_when_left_by_another_broker_then_deleted_after_its_deadline() -> None:
    """Scenario 5: the new leader deletes the attempt's objects once no process can finish it."""
    world = World(brokers=2, policy=KEEP_LOCAL)
    world.segments(1)
    old = world.start(1)
    old.effects.after("write .log", old.effects.crash)
    world.cycle()
    world.elect(2)
    world.start(2)
    world.cycle()
    early = [r.metadata.state for r in world.records()]

    world.clock.advance(world.settings.attempt_timeout_ms)
    world.settle()

    assert SegmentState.COPY_SEGMENT_STARTED in early
    assert violations(world) + leftovers(world) == []
    assert len(world.object_names()) == 2


def test_copy_when_two_owners_finish_the_same_range_then_one_answers_always() -> None:
    """Scenario 6: both are accepted, all lookups find the same one, the size counts once."""
    world = World(brokers=2, policy=replace(KEEP_REMOTE, retention_bytes=500))
    world.segments(1)
    old, new = world.start(1), world.start(2)

    def take_over_and_copy() -> None:
        world.elect(2)
        new.step()

    old.effects.before(FINISHED, take_over_and_copy)
    world.cycle()
    world.segments(1)

    world.settle()

    found = [
        world.metadata.remote_log_segment_metadata(TIP, offset, leader_epoch=0)
        for offset in range(10)
    ]
    assert world.stored() == [(0, 10), (0, 10), (10, 20)]
    assert len({metadata.segment_id for metadata in found if metadata}) == 1
    assert world.state().log_start_offset == 0
    assert violations(world) == []


@pytest.mark.parametrize("failing", ["write .log", "write .meta"])
def test_copy_when_an_object_fails_then_nothing_of_it_is_left(failing: str) -> None:
    """Scenario 13: the objects are deleted at once, and copied again in a later cycle."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    world.start().effects.fail(failing, UNREACHABLE)
    world.cycle()
    after_failure = world.object_names()

    world.settle()

    assert after_failure == []
    assert world.stored() == [(0, 10)]
    assert violations(world) + leftovers(world) == []


def test_copy_when_objects_can_not_be_cleared_at_once_then_a_deletion_is_recorded() -> None:
    """Scenario 13: the deletion is retried until the store accepts it."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    effects = world.start().effects
    effects.fail("write .meta", UNREACHABLE)
    effects.fail("delete .log", UNREACHABLE, times=2)
    world.cycle()
    left = len(world.object_names())

    world.settle()

    assert left == 1
    assert len(world.object_names()) == 2
    assert violations(world) + leftovers(world) == []


def test_copy_when_finished_is_not_published_then_not_stored_and_not_trimmed() -> None:
    """Scenario 14: local data stays; the next cycle clears the attempt and copies again."""
    world = World()
    world.segments(2)
    process = world.start()
    process.effects.fail(FINISHED, RetriableError("topic cannot be reached"), times=30)
    for _ in range(8):
        world.cycle()

    assert world.stored() == []
    assert world.leader().log_start_offset == 0
    assert violations(world) == []
    blocked = process.reports[0].trim_blocked
    assert blocked is not None
    assert blocked.reason == "not_stored"


def test_copy_when_finished_came_through_unknown_then_it_counts() -> None:
    """Scenario 14: an answer that was lost changes nothing; no second copy, nothing deleted."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    process = world.start()
    process.effects.lose_answer(FINISHED, RetriableError("no answer"))

    world.settle()

    assert world.stored() == [(0, 10)]
    assert process.effects.performed.count(STARTED) == 1
    assert violations(world) + leftovers(world) == []


def test_copy_when_snapshot_and_transaction_index_are_missing_then_absence_is_recorded() -> None:
    """Scenario 16: the segment is copied and can be read."""
    world = World()
    world.leader().producer_snapshot = None
    world.segments(2)
    process = world.start()

    world.settle()

    metadata = world.records()[0].metadata
    assert not metadata.has_transaction_index
    for absent in (IndexType.PRODUCER_SNAPSHOT, IndexType.TRANSACTION):
        with pytest.raises(TieredStorageError, match="no index of this type"):
            process.ports.storage.fetch_index(metadata, absent)
    assert world.leader().log_start_offset == 10
    assert violations(world) == []


def test_copy_when_tiering_begins_late_then_all_old_segments_and_the_same_start() -> None:
    """Scenario 23: an existing topic is copied from its log start, which stays."""
    world = World(policy=None)
    world.start()
    world.segments(4)
    world.leader().move_start(10)
    world.started_at_offset[TIP] = 10
    world.cycle()
    before = world.records()

    world.set_policy(KEEP_LOCAL)
    world.settle()

    assert before == []
    assert world.stored() == [(10, 20), (20, 30), (30, 40)]
    assert (world.state().log_start_offset, world.leader().log_start_offset) == (10, 10)


def test_copy_when_switched_off_and_on_then_copies_from_the_local_start() -> None:
    """Scenario 78: earlier segments stay as they are, and nothing is stored twice."""
    world = World()
    world.segments(3)
    world.start()
    world.settle()
    world.set_policy(replace(KEEP_REMOTE, state=PolicyState.DISABLED))
    world.segments(2)
    world.settle()
    while_off = world.stored()

    world.set_policy(KEEP_REMOTE)
    world.settle()

    assert while_off == [(0, 10), (10, 20), (20, 30)]
    assert world.stored() == [*while_off, (30, 40), (40, 50)]
    assert violations(world) + leftovers(world) == []


def test_copy_when_the_first_of_several_fails_then_no_later_one_is_copied() -> None:
    """Scenario 105: no hole is made; the rest waits for the first."""
    world = World()
    world.segments(3)
    world.start().effects.fail("write .log", UNREACHABLE, times=4)
    world.cycle()
    behind_a_failure = world.stored()

    world.settle()

    assert behind_a_failure == []
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert violations(world) == []


@pytest.mark.parametrize("moment", ["write .log", "write .meta"])
def test_copy_when_file_changes_under_the_reader_then_not_finished_and_cleared(
    moment: str,
) -> None:
    """R21; scenario 9: a file that was cut and grew again has other content."""
    world = World(policy=KEEP_LOCAL)
    world.segments(2)
    world.commit(10)
    replica = world.leader()
    process = world.start()

    def cut_and_grow_again() -> None:
        batch = replica.files[0].batches[-1]
        replica.truncate(5)
        replica.append(batch)
        replica.roll()

    process.effects.after(moment, cut_and_grow_again)
    world.cycle()
    performed = list(process.effects.performed)
    world.commit(10)

    world.settle()

    assert FINISHED not in performed
    assert world.stored() == [(0, 10)]
    assert violations(world) + leftovers(world) == []


def test_copy_when_a_batch_is_of_another_epoch_then_refused() -> None:
    """R21: bytes that the lineage does not know are not stored."""
    world = World(policy=KEEP_LOCAL)
    world.leader().append(build_batches(1, leader_epoch=7)[0])
    world.commit()
    world.roll()
    world.start()

    for _ in range(3):
        world.cycle()

    assert world.stored() == []
    assert violations(world) == []


def test_copy_when_files_are_deleted_meanwhile_then_it_ends_well() -> None:
    """Scenario 18: the descriptor holds the bytes."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    replica = world.leader()

    def expire_locally() -> None:
        replica.move_start(10)
        replica.delete_old_files()

    world.start().effects.before("write .log", expire_locally)
    world.settle()

    name = world.records()[0].metadata.objects[0].key
    whole = ByteRange(start_position=0, end_position=1 << 20)
    content = world.objects.read_range(name, whole)
    assert world.stored() == [(0, 10)]
    assert [header.base_offset for _, header in scan_batches(memoryview(content))] == [0, 5]


@pytest.mark.parametrize("further", [None, 9, 12])
def test_copy_when_records_were_deleted_before_their_epoch_was_claimed_then_is_made(
    further: int | None,
) -> None:
    """R5: the broker's first epoch entry then has the log start, not the start of the epoch."""
    world = World()
    world.produce(5)
    world.roll()
    process = world.start()
    world.cycle()
    world.elect(1)
    world.segments(2)
    world.leader().move_start(8)
    world.request_log_start(8)
    process.effects.fail("write .log", RetriableError("store cannot be reached"), times=1)
    world.cycle()
    claimed = world.state().lineage
    if further is not None:
        world.leader().move_start(further)
        world.request_log_start(further)

    world.settle()

    assert claimed == Lineage.of((0, 0), (1, 8))
    assert world.stored()[-2:] == [(5, 15), (15, 25)]
    assert world.state().log_start_offset == (further or 8)
    assert violations(world) == []
