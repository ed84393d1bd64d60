"""How a log start moves, what is deleted after it, and how failed deletions end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.view import PolicyLimits
from rlm.tasks.cycle.partition_views import CycleOutlook
from rlmm.cache.memory import MemoryStore
from rlmm.events.log_start import LogStartAdvanced
from rlmm.events.policy import PolicyState, topic_policies
from rlmm.record_keys import RecordKind, parse_record_key
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import KEEP_REMOTE, TIP, World

MINUTE_MS = 60_000
TEN_MINUTES = replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS)
LOG_START = "publish LogStartAdvanced"
DELETE_STARTED = "publish DELETE_SEGMENT_STARTED"
DELETE_FINISHED = "publish DELETE_SEGMENT_FINISHED"
REFUSED = RetriableError("store refuses")


def expired_world(*, partitions: int = 1) -> tuple[World, Process]:
    """Return a world with three stored segments; the next cycle expires the first two."""
    world = World(partitions=partitions, policy=TEN_MINUTES)
    for tip in world.tips:
        world.segments(2, tip=tip)
    process = world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    for tip in world.tips:
        world.segments(1, tip=tip)
    process.effects.performed.clear()
    return world, process


def log_object(world: World, index: int) -> str:
    """Return the name of a segment's `.log` object."""
    return world.records()[index].metadata.objects[0].key


def test_expiry_when_by_time_then_only_older_segments_and_the_start_first() -> None:
    """Scenario 67: oldest first; nothing is deleted before the log start has moved."""
    world, process = expired_world()

    world.settle()

    performed = process.effects.performed
    deleted = [
        r.metadata.offsets.start_offset for r in world.records(SegmentState.DELETE_SEGMENT_FINISHED)
    ]
    assert performed.index(LOG_START) < performed.index(DELETE_STARTED)
    assert deleted == [0, 10]
    assert (world.stored(), world.state().log_start_offset) == ([(20, 30)], 20)
    assert violations(world) + leftovers(world) == []


def test_expiry_when_a_client_deleted_records_then_as_far_as_it_said() -> None:
    """Scenario 75, R13: segments wholly below are deleted; the one with the start stays."""
    world = World(policy=KEEP_REMOTE)
    world.segments(3)
    world.start()
    world.settle()
    world.request_log_start(15)

    world.settle()

    state = world.state()
    assert (state.log_start_offset, state.log_start_requested_offset) == (15, None)
    assert world.stored() == [(10, 20), (20, 30)]
    assert violations(world) + leftovers(world) == []


def test_expiry_when_local_log_starts_below_then_it_moves_before_any_deletion() -> None:
    """R2: log start → DeleteRecords → DELETE_STARTED → objects → DELETE_FINISHED."""
    world, process = expired_world()

    world.settle()

    order = [
        name
        for name in process.effects.performed
        if name in {LOG_START, "delete_records", DELETE_STARTED, "delete .log", "delete .meta"}
        or name == DELETE_FINISHED
    ]
    assert order[:6] == [
        LOG_START,
        "delete_records",
        DELETE_STARTED,
        "delete .log",
        "delete .meta",
        DELETE_FINISHED,
    ]


def test_expiry_when_broker_can_not_be_asked_then_no_object_is_deleted() -> None:
    """R2: while the local log starts below the log start, the expired segments stay."""
    world, process = expired_world()
    process.effects.fail("delete_records", RetriableError("connection lost"), times=5)

    for _ in range(4):
        world.cycle()

    assert world.state().log_start_offset == 20
    assert DELETE_STARTED not in process.effects.performed


def test_expiry_when_log_start_is_not_written_then_nothing_is_deleted() -> None:
    """R2: everything waits for the log start."""
    world, process = expired_world()
    process.effects.fail(LOG_START, RetriableError("topic cannot be reached"), times=5)

    for _ in range(4):
        world.cycle()

    assert DELETE_STARTED not in process.effects.performed
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]


def test_expiry_when_by_size_then_overlap_of_local_and_remote_counts_once() -> None:
    """Scenario 68: a stored segment that is still local counts once."""
    keep = replace(KEEP_REMOTE, retention_bytes=0, local_retention_ms=-1)
    world = World(policy=replace(keep, retention_bytes=-1))
    world.segments(4)
    world.start()
    world.settle()
    segment_bytes = world.records()[0].metadata.segment_size_bytes
    world.set_policy(replace(keep, retention_bytes=3 * segment_bytes + 20))
    world.settle()
    nothing_over = world.state().log_start_offset

    world.set_policy(replace(keep, retention_bytes=2 * segment_bytes))
    world.settle()

    assert nothing_over == 0
    assert world.stored() == [(20, 30), (30, 40)]
    assert violations(world) + leftovers(world) == []


def test_expiry_when_a_new_leader_is_not_caught_up_then_nothing_is_over_the_size() -> None:
    """Scenario 70: the process knows the retention and old segments, but not later decisions."""
    world = World(brokers=2, policy=KEEP_REMOTE)
    world.segments(3)
    world.start(1)
    behind = world.start(2)
    world.settle()
    segment_bytes = world.records()[0].metadata.segment_size_bytes
    world.set_policy(replace(KEEP_REMOTE, retention_bytes=segment_bytes))
    topic_policies(behind.ports.metadata)
    behind.effects.fail("end_offsets", RetriableError("topic cannot be reached"), times=50)
    world.elect(2)

    for _ in range(4):
        world.cycle()

    kept = world.stored()
    world.restart(2)
    world.settle()
    assert set(behind.effects.performed) <= {"publish ProcessRegistered"}
    assert kept == [(0, 10), (10, 20), (20, 30)]
    assert world.stored() == [(20, 30)]
    assert violations(world) + leftovers(world) == []


def test_expiry_when_a_copy_is_under_way_then_it_neither_counts_nor_expires() -> None:
    """Scenario 71: a segment that is being copied is excluded from the size, and stays."""
    world = World(policy=replace(KEEP_REMOTE, retention_bytes=400))
    world.segments(1)
    process = world.start()
    started: list[SegmentState] = []

    def look_from_within() -> None:
        started.extend(r.metadata.state for r in world.records())
        process.cycle.step(CycleOutlook())

    process.effects.before("write .meta", look_from_within)
    world.settle()

    assert started == [SegmentState.COPY_SEGMENT_STARTED]
    assert DELETE_STARTED not in process.effects.performed
    assert world.state().log_start_offset == 0
    assert world.stored() == [(0, 10)]


def test_deletions_when_lead_is_lost_between_two_then_second_is_not_done() -> None:
    """Scenario 72: only the current leader decides."""
    world, process = expired_world()

    def lose_the_lead() -> None:
        process.leadership.keep_only({})

    process.effects.after(DELETE_FINISHED, lose_the_lead)
    while DELETE_FINISHED not in process.effects.performed:
        world.cycle()

    assert process.effects.performed.count(DELETE_STARTED) == 1


def test_deletions_when_deposed_between_two_then_second_is_refused() -> None:
    """Scenario 72; R7: only the metadata topic knows of the new leader."""
    world = World(brokers=2, policy=TEN_MINUTES)
    world.segments(2)
    old = world.start(1)
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    new = world.start(2)

    def take_over() -> None:
        world.elect(2)
        new.leadership.claim_all(new.leadership.keep_only({TIP: 1}))

    old.effects.after(DELETE_FINISHED, take_over)
    while DELETE_FINISHED not in old.effects.performed:
        world.cycle()
    deleted_by_old = old.effects.performed.count("delete .log")

    world.settle()

    assert deleted_by_old == 1
    assert new.effects.performed.count("delete .log") == 1
    assert violations(world) + leftovers(world) == []


def test_deletion_when_it_keeps_failing_then_becomes_a_letter_and_others_continue() -> None:
    """Scenario 73: keys, reason, attempts; no leader tries it by itself afterwards."""
    world, process = expired_world()
    process.effects.refuse("delete .log", log_object(world, 0), REFUSED)

    world.settle()

    dead_letters = world.dead_letters.published
    states = [r.metadata.state for r in world.records()]
    assert [dead_letter.metadata.offsets.start_offset for dead_letter in dead_letters] == [0]
    assert dead_letters[0].attempts == world.settings.max_delete_attempts
    assert "store refuses" in dead_letters[0].reason
    assert [key[-4:] for key in dead_letters[0].object_keys] == [".log", "meta"]
    assert dead_letters[0].delete_started is not None
    assert dead_letters[0].metadata_topic_id == "topic-1"
    assert SegmentState.DELETE_SEGMENT_FINISHED in states
    assert violations(world) + leftovers(world) == []


def test_dead_letter_when_written_then_no_leader_tries_that_deletion_again() -> None:
    """Scenario 73: neither this run nor a later one nor another leader retries it."""
    world, process = expired_world()
    process.effects.refuse("delete .log", log_object(world, 0), REFUSED)
    world.settle()

    second = world.restart()
    world.settle()

    assert "delete .log" not in second.effects.performed
    assert len(world.dead_letters.published) == 1
    assert [r.is_dead_lettered for r in world.records(SegmentState.DELETE_SEGMENT_STARTED)] == [
        True
    ]


def test_dead_letter_when_topic_refuses_it_then_written_later() -> None:
    """Scenario 73: the segment counts as given up only when the dead letter is durable."""
    world, process = expired_world()
    process.effects.refuse("delete .log", log_object(world, 0), REFUSED)
    process.effects.fail("dead_letter", RetriableError("topic cannot be reached"), times=2)

    world.settle(quiet_cycles=6)

    assert len(world.dead_letters.published) == 1
    assert leftovers(world) == []


def test_deletion_when_store_recovers_then_done_without_a_letter() -> None:
    """Scenario 73: below the limit, each failure only postpones the next attempt."""
    world, process = expired_world()
    process.effects.fail("delete .log", REFUSED, times=2)

    world.settle()

    assert world.dead_letters.published == []
    assert violations(world) + leftovers(world) == []


def test_segment_when_the_log_start_lies_in_it_then_kept_until_wholly_below() -> None:
    """Scenario 113: two runs delete each segment once."""
    world, process = expired_world()
    world.settle()
    world.segments(2)
    world.settle()
    event = LogStartAdvanced(
        event_id=world.new_id(),
        topic_id_partition=TIP,
        writer=process.leadership.led()[0].lead.writer,
        offset=35,
        reason="a client's DeleteRecords",
    )
    world.leader().move_start(35)
    world.started_at_offset[TIP] = 35

    world.metadata.publish(event)
    world.settle()

    assert world.stored() == [(30, 40), (40, 50)]
    assert process.effects.performed.count(DELETE_STARTED) == 3
    assert violations(world) + leftovers(world) == []


def test_records_of_a_segment_when_deleted_long_ago_then_removed_whole_and_claims_kept() -> None:
    """R11: tombstones only after the grace, for all records of the segment, never for claims."""
    settings = ProcessSettings(
        limits=PolicyLimits(local_trim_min_age_ms=0, orphan_grace_ms=60 * MINUTE_MS)
    )
    world = World(policy=TEN_MINUTES, settings=settings)
    world.segments(2)
    world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    world.settle()
    before_grace = len(world.records())
    world.clock.advance(61 * MINUTE_MS)

    world.settle()

    tombstoned = {parse_record_key(r.key).kind for r in world.topic.records(0) if r.value is None}
    assert before_grace == 2
    assert world.records() == []
    assert RecordKind.SEGMENT in tombstoned
    assert RecordKind.CLAIM not in tombstoned


def test_records_when_topic_is_compacted_then_a_new_reader_knows_the_same() -> None:
    """R11: the whole topic and its compacted form fold to the same state."""
    world, _ = expired_world()
    world.settle()
    known = (world.records(), world.state())

    world.topic.compact(0, world.topic.end_offset(0), drop_tombstones=True)
    world.hosts[1].cache = MemoryStore()
    reader = world.restart().ports.metadata

    assert (list(reader.list_remote_log_segments(TIP, states=tuple(SegmentState))),) == (known[0],)
    assert reader.partition_state(TIP) == known[1]


def test_removal_when_disabled_with_delete_then_remote_data_is_deleted_and_local_stays() -> None:
    """Scenario 77: the log start moves to the local start, then all remote data is deleted.

    Stored segments above the local start are deleted, too, because nothing would expire them later.
    """
    world = World()
    world.segments(3)
    world.start()
    world.settle()
    world.set_policy(replace(KEEP_REMOTE, state=PolicyState.DISABLED, delete_remote=True))

    world.settle()

    assert world.state().log_start_offset == world.leader().log_start_offset == 20
    assert world.stored() == []
    assert world.object_names() == []
    assert violations(world) + leftovers(world) == []


def test_removal_when_disabled_without_delete_then_reads_continue() -> None:
    """Scenario 77: no new copy, nothing deleted."""
    world = World()
    world.segments(3)
    world.start()
    world.settle()
    names = world.object_names()
    world.set_policy(replace(KEEP_REMOTE, state=PolicyState.DISABLED))
    world.segments(2)

    world.settle()

    assert world.object_names() == names
    assert violations(world) == []


@pytest.mark.parametrize("partitions", [2, 3])
def test_expiry_when_one_partition_can_not_delete_then_others_do(partitions: int) -> None:
    """Scenario 73: deletions of one partition do not wait for another's."""
    world, process = expired_world(partitions=partitions)
    process.effects.refuse("delete .log", log_object(world, 0), REFUSED)

    world.settle()

    for tip in world.tips[1:]:
        assert world.stored(tip=tip) == [(20, 30)]
    assert violations(world) + leftovers(world) == []
