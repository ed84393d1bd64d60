"""When and how far the local log is trimmed, and the checks right before."""

from __future__ import annotations

import pytest

from rlm.policy.view import PolicyLimits
from rlmm.cache.memory import MemoryStore
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartAdvanced
from rlmm.events.segment import SegmentEvent
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.gateways import gateway_at
from tests.fakes.invariants import first_unreadable, leftovers, violations
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import KEEP_REMOTE, TIP, World
from tests.metadata_builder import anomaly, anomaly_reported
from tests.unit.rlm.tasks.single_copies import copy_only

TRIMMED = "publish LocalLogTrimmed"
DELETE_RECORDS = "delete_records"
FINISHED = "publish COPY_SEGMENT_FINISHED"
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED


def stored_world(*, brokers: int = 1) -> tuple[World, Process]:
    """Return a world with three stored segments, none trimmed yet."""
    world = World(brokers=brokers)
    world.segments(3)
    process = world.start(1)
    world.cycle()
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    return world, process


def test_trim_when_stored_then_recorded_first_and_deleted_after() -> None:
    """R2: the trim event is accepted before DeleteRecords."""
    world, process = stored_world()

    world.cycle()

    performed = process.effects.performed
    assert performed.index(TRIMMED) + 1 == performed.index(DELETE_RECORDS)
    assert world.hosts[1].broker.deletions == [(TIP, 20)]
    assert violations(world) == []


def test_trim_when_a_deletion_lands_before_its_record_then_given_up() -> None:
    """R2: the last check reads all records that precede the trim in the metadata topic."""
    world, process = stored_world()
    gone = world.records()[0].metadata

    def land() -> None:
        event = SegmentEvent(
            event_id=world.new_id(),
            metadata=gone.in_state(DELETE_STARTED, event_timestamp_ms=world.clock.wall_ms()),
            expected_state=gone.state,
        )
        assert world.metadata.publish(event).accepted

    process.effects.before(TRIMMED, land)

    world.cycle()

    assert process.effects.performed.count(TRIMMED) == 1
    assert world.leader().log_start_offset == 0


def test_trim_when_an_anomaly_is_recorded_before_the_trim_then_given_up() -> None:
    """The broker's copy may be the only one that is whole."""
    world, process = stored_world()
    damaged = world.records()[0].metadata

    def report() -> None:
        found = anomaly(damaged.segment_id.id.int, key=damaged.objects[0].key)
        assert world.metadata.publish(anomaly_reported(found, partition=TIP)).accepted

    process.effects.before(TRIMMED, report)

    world.cycle()

    assert process.effects.performed.count(TRIMMED) == 1
    assert world.leader().log_start_offset == 0


def test_trim_when_a_damaged_segment_has_expired_then_local_data_is_trimmed_to_the_log_start() -> (
    None
):
    """Records below the log start need not be stored."""
    world, process = stored_world()
    process.effects.fail(DELETE_RECORDS, RetriableError("not now"), times=1)
    world.cycle()
    damaged = world.records()[0].metadata
    found = anomaly(damaged.segment_id.id.int, key=damaged.objects[0].key)
    world.objects.delete(damaged.objects[0].key)
    assert world.metadata.publish(anomaly_reported(found, partition=TIP)).accepted
    lead = process.leadership.led()[0].lead
    event = LogStartAdvanced(
        event_id=world.new_id(), topic_id_partition=TIP, writer=lead.writer, offset=10, reason="old"
    )
    assert world.metadata.publish(event).accepted

    world.cycle()

    assert world.leader().log_start_offset >= 10


def test_trim_when_log_start_is_not_on_record_then_waits_for_it() -> None:
    """Scenario 4: the log start is the broker's from before the trim, not from after it."""
    world = World()
    world.segments(3)
    process = world.start(1)
    process.effects.fail("publish LogStartAdvanced", RetriableError("no topic"), times=2)

    world.settle()

    performed = process.effects.performed
    assert performed.index("publish LogStartAdvanced") < performed.index(DELETE_RECORDS)
    assert world.state().log_start_offset == 0
    assert violations(world) == []


def test_trim_when_everything_is_stored_then_newest_rolled_segment_stays() -> None:
    """R3: producers' state is lost with the log, so it is not trimmed to its end."""
    world, process = stored_world()

    world.settle()

    blocked = process.reports[0].trim_blocked
    assert world.leader().log_start_offset == 20
    assert blocked is not None
    assert blocked.reason == "newest_rolled_segment"


def test_trim_when_younger_than_the_minimum_age_then_stays() -> None:
    """R3: a broker recognizes a retried batch only while the first one is in its log."""
    limits = PolicyLimits(local_trim_min_age_ms=900_000)
    world = World(settings=ProcessSettings(limits=limits))
    world.segments(3)
    process = world.start()
    world.settle()
    young = (world.leader().log_start_offset, process.reports[0].trim_blocked)

    world.clock.advance(900_000)
    world.settle()

    assert young[0] == 0
    assert young[1] is not None
    assert young[1].reason == "younger_than_min_age"
    assert world.leader().log_start_offset == 20


def test_trim_when_carried_out_then_ends_at_a_segment_base() -> None:
    """R3: only at a base offset, however segments were written."""
    world, _ = stored_world()

    world.settle()

    bases = {file.base_offset for file in world.leader().files}
    assert {offset for _, offset in world.hosts[1].broker.deletions} <= bases


def test_trim_when_process_was_paused_then_plan_is_too_old() -> None:
    """R1: nothing is deleted by a decision that was taken long ago."""
    world, process = stored_world()
    process.effects.after(TRIMMED, lambda: world.clock.advance(5_001))

    world.cycle()

    assert TRIMMED in process.effects.performed
    assert DELETE_RECORDS not in process.effects.performed


def test_trim_when_given_up_then_next_cycle_carries_it_out() -> None:
    """R1: a plan that was too old is made again; the trim on record is not written again."""
    world, process = stored_world()
    process.effects.after(TRIMMED, lambda: world.clock.advance(5_001))
    world.cycle()

    world.cycle()

    assert world.leader().log_start_offset == 20
    assert process.effects.performed.count(TRIMMED) == 1


@pytest.mark.parametrize("moment", [TRIMMED, "offsets"])
def test_trim_when_epoch_moved_on_then_nothing_is_deleted(moment: str) -> None:
    """R1: right before the trim, the broker refuses the request with the old epoch."""
    world, process = stored_world(brokers=2)
    process.effects.after(moment, lambda: world.elect(2))

    world.cycle()

    assert [host.broker.deletions for host in world.hosts.values()] == [[], []]


def test_trim_when_same_broker_leads_in_a_newer_epoch_then_old_plan_is_dropped() -> None:
    """R1: the broker must lead in the very epoch of the plan."""
    world, process = stored_world()
    process.effects.after(TRIMMED, lambda: world.elect(1))

    world.cycle()

    assert world.hosts[1].broker.deletions == []


def test_trim_when_carried_out_then_only_own_broker_is_asked() -> None:
    """R1: another replica's broker never gets DeleteRecords from this manager."""
    world, _ = stored_world(brokers=3)

    world.settle()

    assert world.hosts[1].broker.deletions == [(TIP, 20)]
    assert world.hosts[2].broker.deletions == world.hosts[3].broker.deletions == []


def test_trim_when_event_is_refused_then_nothing_is_deleted() -> None:
    """R2, R11: no side effect follows a refusal."""
    world, process = stored_world()
    second = world.start(1)
    process.effects.before(TRIMMED, second.step)

    world.cycle()

    assert DELETE_RECORDS not in process.effects.performed


def test_trim_when_event_is_not_known_to_be_written_then_nothing_is_deleted() -> None:
    """R2: an event that may be in the topic counts as missing until the next cycle."""
    world, process = stored_world()
    process.effects.lose_answer(TRIMMED, RetriableError("no answer"))

    world.cycle()

    assert DELETE_RECORDS not in process.effects.performed
    assert world.state().trimmed_offset == 20


def test_trim_when_broker_is_gone_for_a_while_then_done_later() -> None:
    world, process = stored_world()
    process.effects.fail(DELETE_RECORDS, RetriableError("connection lost"), times=2)

    world.settle()

    assert world.leader().log_start_offset == 20
    assert violations(world) == []


def test_trim_when_policy_of_topic_forbids_it_then_nothing_else_breaks() -> None:
    """Scenario 81: refused by the broker; copies continue."""
    world, process = stored_world()
    world.hosts[1].broker.undeletable.add(TIP)
    world.segments(1)

    world.cycle()

    assert process.problem is None
    assert world.leader().log_start_offset == 0
    assert world.stored()[-1] == (30, 40)


def test_trim_when_gated_then_never_beyond_what_is_stored_verified_and_committed() -> None:
    """Scenario 79: segment by segment, whatever is wrong with the next one."""
    world = World()
    world.segments(4)
    world.leader().open_transaction_offset = 15
    process = world.start()
    world.settle()

    blocked = process.reports[0].trim_blocked
    assert world.leader().log_start_offset == 10
    assert blocked is not None
    assert blocked.values == {"segment_end_offset": 20, "stored_end_offset": 10}


def test_trim_when_stored_range_has_a_hole_then_stops_before_it() -> None:
    """Scenarios 80, 105: uploads that ended out of order; the reason is visible."""
    world = World()
    world.segments(4)
    process = world.start()
    process.leadership.claim_all(process.leadership.keep_only({TIP: 0}))
    copy_only(world, process, 0)
    copy_only(world, process, 2)
    process.effects.fail("write .log", RetriableError("store cannot be reached"), times=9)

    for _ in range(4):
        world.cycle()

    blocked = process.reports[0].trim_blocked
    assert world.stored() == [(0, 10), (20, 30)]
    assert world.leader().log_start_offset == 10
    assert blocked is not None
    assert blocked.values == {"segment_end_offset": 20, "stored_end_offset": 10}
    assert violations(world) == []


def test_trim_when_early_epochs_left_the_checkpoint_then_their_segments_still_match() -> None:
    """Scenario 82; R5: the whole lineage is on record before the trim, also for a restart."""
    world = World()
    for _ in range(3):
        world.segments(2)
        world.elect(1)
    world.segments(1)
    world.start()
    world.settle()
    checkpoint = world.leader().checkpoint

    world.hosts[1].cache = MemoryStore()  # the manager's own disk is lost as well
    world.restart()
    world.settle()

    assert checkpoint.entries[0].start_offset == world.leader().log_start_offset == 60
    assert world.state().lineage == Lineage.of((0, 0), (1, 20), (2, 40), (3, 60))
    everything = OffsetRange(start_offset=0, end_offset=60)
    assert first_unreadable(world, TIP, everything, world.leader()) is None
    assert violations(world) == []


def test_trim_when_an_earlier_leader_trimmed_further_then_lineage_is_on_record() -> None:
    """R5: the claim could not contain epoch 1, because the checkpoint did not have it yet."""
    world = World(brokers=2)
    world.segments(2)
    world.cut_off.add(2)
    world.segments(2)
    world.start(1)
    world.settle()
    world.cut_off.clear()
    world.elect(2)
    replica = world.leader()
    late_entry = replica.epochs.pop()
    world.start(2)
    world.cycle()
    claimed = world.state().lineage
    replica.epochs.append(late_entry)
    world.segments(2)

    world.settle()

    assert claimed == Lineage.of((0, 0))
    assert world.state().trimmed_offset == world.leader().log_start_offset == 30
    assert world.leader().checkpoint == Lineage.of((1, 30))
    assert world.state().lineage == Lineage.of((0, 0), (1, 20))
    assert violations(world) + leftovers(world) == []


def test_checkpoint_when_it_begins_above_all_stored_epochs_then_nothing_is_deleted() -> None:
    """R5: the checkpoint alone never says that a stored segment is unreferenced."""
    world = World()
    world.segments(2)
    world.elect(1)
    world.segments(2)
    world.start()
    world.settle()
    replica = world.leader()
    replica.epochs = [e for e in replica.epochs if e.epoch == 1]
    names = world.object_names()

    world.restart()
    world.settle()

    assert world.object_names() == names
    assert world.stored() == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert violations(world) + leftovers(world) == []


def test_log_when_it_ends_below_what_is_stored_then_diverged_and_untouched() -> None:
    """R5: alarm, no trim, no deletion, until somebody decides."""
    world, process = stored_world()
    world.settle()
    world.leader().truncate(25)

    world.settle()

    assert process.reports[0].is_diverged
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert world.leader().log_start_offset == 20


def test_log_when_cut_by_an_unclean_election_then_copied_from_where_it_parts() -> None:
    """Scenario 7: segments outside of the lineage are never served."""
    world = World(brokers=2)
    world.segments(4)
    world.start(1)
    world.cut_off.add(2)
    world.segments(2)
    world.cycle()
    for process in world.running(1):
        process.effects.crashed = True
    world.cut_off.clear()
    world.elect(2)
    world.segments(1)
    process = world.start(2)

    world.settle()

    found = world.metadata.remote_log_segment_metadata(TIP, 45, leader_epoch=1)
    assert world.state().lineage == Lineage.of((0, 0), (1, 40))
    assert found is not None
    assert found.writer == process.leadership.led()[0].lead.writer
    assert violations(world) == []


def test_start_when_moved_by_somebody_else_then_reported_and_remote_start_stays() -> None:
    """R6: an external start is reported, and does not move the log start."""
    world, process = stored_world()
    world.settle()
    world.leader().move_start(30)

    world.settle()

    assert process.reports[0].has_external_start
    assert world.state().log_start_offset == 0


def test_trim_when_a_gateway_has_not_read_the_newest_policy_then_waits_for_it() -> None:
    """R15: a gateway must know that the topic is tiered, and where its segments are stored."""
    world, process = stored_world()
    before_policy = world.topic.end_offset(0)
    world.set_policy(KEEP_REMOTE)
    gateway_at(world, before_policy)
    process.step()
    blocked, while_behind = process.reports[0].trim_blocked, world.leader().log_start_offset
    gateway_at(world, before_policy + 1)

    process.step()

    assert blocked is not None
    assert (blocked.reason, blocked.values["metadata_offset"]) == ("gateway_behind", before_policy)
    assert while_behind == 0
    assert world.leader().log_start_offset == 20


def test_trims_when_many_partitions_then_one_request_in_a_cycle() -> None:
    """R2: one request for many partitions, at most once a cycle."""
    world = World(partitions=3)
    for tip in world.tips:
        world.segments(2, tip=tip)
    process = world.start()

    world.settle()

    assert process.effects.performed.count(DELETE_RECORDS) == 1
    assert sorted(world.hosts[1].broker.deletions) == [(tip, 10) for tip in world.tips]


def test_trim_when_lower_than_one_on_record_then_no_second_event() -> None:
    """R2: a trim that is on record covers every lower one."""
    world, process = stored_world()
    lead = process.leadership.led()[0].lead
    event = LocalLogTrimmed(
        event_id=world.new_id(),
        topic_id_partition=TIP,
        writer=lead.writer,
        offset=30,
        lineage=world.leader().checkpoint,
    )
    world.metadata.publish(event)

    world.settle()

    assert TRIMMED not in process.effects.performed
    assert world.leader().log_start_offset == 20


def test_trim_when_unsupported_error_for_one_partition_then_others_continue() -> None:
    """Scenario 81: a refusal concerns only its partition."""
    world = World(partitions=2)
    for tip in world.tips:
        world.segments(2, tip=tip)
    world.hosts[1].broker.undeletable.add(world.tips[0])
    world.start()

    world.settle()

    assert [world.leader(tip).log_start_offset for tip in world.tips] == [0, 10]


def test_trim_when_store_of_events_is_down_then_none() -> None:
    """Scenario 34: trims stop with the metadata topic."""
    world, process = stored_world()
    process.effects.fail(TRIMMED, RetriableError("topic cannot be reached"), times=3)

    for _ in range(3):
        world.cycle()

    assert DELETE_RECORDS not in process.effects.performed
