"""The stored data of a deleted topic is deleted."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.topics.originals_mirror import StoredOriginals
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.pause import PausableTask, TopicPaused, paused_tasks
from rlmm.events.policy import TopicPolicyChanged, topic_policies
from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.events.segment import SegmentEvent
from rlmm.record_keys import RecordKind, parse_record_key
from rlmm.state.partition_state import RemotePartitionDeleteState
from rsm.layout.originals import OriginalSettings, OriginalsKeys
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.effects import Moment
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.process import Process
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.world import KEEP_REMOTE, TIP, TOPIC_ID, World
from tests.unit.rlm.tasks.deleting.removal_world import (
    MINUTE_MS,
    ORPHAN_GRACE_MS,
    DeletingWorld,
    stored_world,
)

MARKED = RemotePartitionDeleteState.DELETE_PARTITION_MARKED
STARTED = RemotePartitionDeleteState.DELETE_PARTITION_STARTED
FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
STEP = "publish RemotePartitionDeleteMetadata"
REFUSED = RetriableError("store refuses")


def removed(world: World) -> bool:
    return not world.object_names() and not topic_policies(world.metadata)


def test_removal_when_finished_then_the_topics_originals_are_gone_from_the_store() -> None:
    """R9, scenario 76: a copy of them outlives the metadata topic, not the topic."""
    world, _ = stored_world()
    kept = StoredOriginals(world.objects, OriginalsKeys())
    kept.keep(OriginalSettings(topic=TIP.topic, topic_id=TOPIC_ID, values={"retention.ms": "1"}))
    world.delete_topic()

    world.minutes(3 * 60)

    assert removed(world)


def kinds_left(world: World) -> set[RecordKind]:
    """Return the kinds of records about partitions that are left after compaction."""
    world.topic.compact(0, world.topic.end_offset(0), drop_tombstones=True)
    kinds = {parse_record_key(record.key).kind for record in world.topic.records(0)}
    return kinds - {RecordKind.REGISTRATION, RecordKind.POLICY}


def test_topic_when_deleted_then_all_that_is_stored_of_it_is_deleted() -> None:
    """Scenario 76: every partition, objects and metadata; only its deletion stays on record."""
    world, process = stored_world(partitions=3)
    world.delete_topic()

    world.minutes(10)
    world.clock.advance(ORPHAN_GRACE_MS)
    world.minutes(2)

    assert removed(world)
    assert [world.state(tip).deletion for tip in world.tips] == [FINISHED] * 3
    assert [world.records(tip=tip) for tip in world.tips] == [[], [], []]
    assert kinds_left(world) == {RecordKind.PARTITION_DELETE}
    assert process.effects.performed.count("delete .log") == 9


def test_topic_when_deleted_then_each_step_is_on_record_before_the_next() -> None:
    """Scenario 76, KIP-405: MARKED, STARTED, the segments, FINISHED."""
    world, process = stored_world()
    world.delete_topic()

    world.minutes(10)

    order = [
        name
        for name in process.effects.performed
        if name in {STEP, "delete .log"} or "DELETE_SEGMENT" in name
    ]
    deletion = ["publish DELETE_SEGMENT_STARTED", "delete .log", "publish DELETE_SEGMENT_FINISHED"]
    assert order == [STEP, STEP, *deletion * 3, STEP]
    assert world.object_names() == []


def test_topic_when_missing_for_less_than_the_grace_then_nothing_happens() -> None:
    """Scenario 76: a topic that a broker does not know for a moment is not deleted."""
    world, process = stored_world()
    world.delete_topic()
    world.minutes(4)
    world.gone.clear()
    world.minutes(4)
    world.gone.add(TOPIC_ID)

    world.minutes(4)

    assert STEP not in process.effects.performed
    assert len(world.stored()) == 3


def test_topic_when_a_broker_can_not_be_asked_then_nothing_counts_as_deleted() -> None:
    world, process = stored_world()
    world.delete_topic()
    process.effects.fail("topics", RetriableError("a broker is away"), times=100)

    world.minutes(20)

    assert STEP not in process.effects.performed


def test_topic_when_the_broker_still_has_its_log_then_nothing_happens() -> None:
    world, process = stored_world()
    world.delete_topic()
    world.listed_still = True

    world.minutes(20)

    assert STEP not in process.effects.performed


def test_removal_when_a_copy_is_under_way_then_its_late_objects_are_swept() -> None:
    """Scenario 106: the removal ends after that copy's deadline, and leaves nothing."""
    world = DeletingWorld(partitions=1, brokers=1, executor=SynchronousExecutor())
    world.segments(1)
    process = world.start()
    process.effects.fail("write .meta", REFUSED, times=1)
    process.effects.fail("delete .log", REFUSED, times=1)
    world.cycle()
    (record,) = world.records(SegmentState.COPY_SEGMENT_STARTED)
    world.delete_topic()
    world.minutes(8)
    late = record.metadata.objects[0].key
    world.objects.create(late)
    before_deadline = world.state().deletion

    world.minutes(10)

    assert before_deadline is STARTED
    assert world.state().deletion is FINISHED
    assert world.object_names() == []


def test_removal_when_the_store_refuses_then_a_letter_and_resumed_when_it_is_repaired() -> None:
    """Scenarios 73, 76: after a failure, the removal continues from where it was."""
    world, process = stored_world()
    (first, *_) = world.records()
    process.effects.refuse("delete .log", first.metadata.objects[0].key, REFUSED)
    world.delete_topic()
    world.minutes(20)
    waiting = (world.state().deletion, len(world.dead_letters.published), removed(world))
    deleted = first.metadata.in_state(
        SegmentState.DELETE_SEGMENT_FINISHED, event_timestamp_ms=world.clock.wall_ms()
    )

    for stored in first.metadata.objects:
        world.objects.delete_many((stored.key,))
    world.metadata.publish(SegmentEvent(event_id=world.new_id(), metadata=deleted))
    world.minutes(2)
    world.clock.advance(ORPHAN_GRACE_MS)
    world.minutes(2)

    assert waiting == (STARTED, 1, False)
    assert removed(world)


def test_removal_when_nothing_can_be_recorded_then_one_warning_for_all_partitions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, process = stored_world(partitions=4)
    process.effects.fail(STEP, RetriableError("no broker"), times=1_000)
    world.delete_topic()

    world.minutes(20)

    given_up = [r for r in caplog.records if "cannot remove a deleted partition" in r.getMessage()]
    assert len(given_up) == 1


def test_removal_when_the_topic_was_found_meanwhile_then_warns_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The removal forgets a topic that is no longer missing."""
    world, process = stored_world()
    process.effects.fail(STEP, RetriableError("no broker"), times=1_000)

    for _ in range(2):
        world.delete_topic()
        world.minutes(20)
        world.gone.clear()
        world.minutes(1)

    given_up = [r for r in caplog.records if "cannot remove a deleted partition" in r.getMessage()]
    assert len(given_up) == 2


def test_removal_when_leased_then_waits_for_the_lease() -> None:
    """R13."""
    world, _ = stored_world()
    lease = ReadLeaseTaken(
        event_id=world.new_id(),
        lease_id=world.new_id(),
        topic_id_partition=TIP,
        offsets=OffsetRange(start_offset=12, end_offset=13),
        duration_ms=30 * MINUTE_MS,
        holder="a Spark job",
    )
    assert world.metadata.publish(lease).accepted
    world.delete_topic()
    world.minutes(10)
    while_leased = world.stored()

    world.minutes(25)

    assert while_leased == [(10, 20)]
    assert world.object_names() == []


def test_removal_when_deletions_are_paused_then_waits_until_they_continue() -> None:
    """A pause blocks all deletions, and ends with the topic's policy."""
    world, process = stored_world()
    pause(world, PausableTask.DELETE)
    world.delete_topic()
    world.minutes(20)
    while_paused = (STEP in process.effects.performed, len(world.stored()))
    pause(world, PausableTask.COPY)

    world.minutes(10)
    world.clock.advance(ORPHAN_GRACE_MS)
    world.minutes(2)

    assert while_paused == (False, 3)
    assert removed(world)
    assert paused_tasks(world.metadata, TOPIC_ID) == frozenset()


@pytest.mark.parametrize(
    ("effect", "deletion", "segments_left"),
    [
        (STEP, MARKED, 3),
        ("publish DELETE_SEGMENT_STARTED", STARTED, 2),
        ("delete .log", STARTED, 2),
    ],
)
def test_removal_when_deletions_are_paused_in_any_phase_then_no_further_segment_is_deleted(
    effect: str, deletion: RemotePartitionDeleteState, segments_left: int
) -> None:
    """If a topic was deleted by mistake, an operator can save what the removal has not reached."""
    world, process = stored_world()
    world.delete_topic()
    process.effects.after(effect, lambda: pause(world, PausableTask.DELETE))
    world.minutes(30)
    while_paused = (world.state().deletion, len(world.stored()), len(world.object_names()))
    pause(world)

    world.minutes(10)
    world.clock.advance(ORPHAN_GRACE_MS)
    world.minutes(2)

    assert while_paused == (deletion, segments_left, 2 * segments_left)
    assert removed(world)


def test_removal_when_the_topic_is_found_again_then_its_job_deletes_no_further_segment() -> None:
    """The brokers' answer was wrong, so the removal must not delete the remaining segments."""
    held = QueuedExecutor()
    world, process = stored_world(executor=held)

    def find() -> None:
        world.gone.clear()
        process.removal.step()

    world.delete_topic()
    world.minutes(6)
    process.effects.after("publish DELETE_SEGMENT_STARTED", find)

    held.run_all()

    assert world.state().deletion is STARTED
    assert len(world.stored()) == 2


def test_topic_when_deleted_then_the_gauge_follows_its_removal_until_no_segment_is_left() -> None:
    """The records of deleted segments stay for the orphan grace, but need no attention."""
    world, process = stored_world()
    before = shown(process)
    world.delete_topic()
    world.minutes(2)
    waiting = shown(process)
    pause(world, PausableTask.DELETE)
    world.minutes(10)
    paused = shown(process)
    pause(world)
    process.effects.fail("delete .log", REFUSED, times=1)
    world.cycle()
    deleting = shown(process)

    world.minutes(10)

    assert [before, waiting, paused, deleting] == [
        {},
        {("orders", "waiting"): 1.0},
        {("orders", "paused"): 1.0},
        {("orders", "deleting"): 1.0},
    ]
    assert not removed(world)
    assert shown(process) == {}


def test_topic_when_deleted_then_only_the_manager_that_deletes_shows_it_after_the_grace() -> None:
    world, process = stored_world(brokers=2)
    other = world.start(2)
    world.delete_topic()
    world.minutes(2)
    waiting = [shown(process), shown(other)]
    for each in (process, other):
        each.effects.fail("delete .log", REFUSED, times=100)

    world.minutes(4)

    assert waiting == [{("orders", "waiting"): 1.0}] * 2
    assert sorted([len(shown(process)), len(shown(other))]) == [0, 1]


def shown(process: Process) -> dict[tuple[str, str], float]:
    (family,) = process.metrics.deleted_topics.collect()
    return {(s.labels["topic"], s.labels["removal"]): s.value for s in family.samples}


def pause(world: World, *tasks: PausableTask) -> None:
    event = TopicPaused(
        event_id=world.new_id(), topic="orders", topic_id=TOPIC_ID, tasks=frozenset(tasks)
    )
    assert world.metadata.publish(event).accepted


def test_topic_when_created_again_then_the_new_one_is_untouched() -> None:
    """Scenarios 38, 76: it has another id and another policy."""
    world, _ = stored_world()
    again = replace(KEEP_REMOTE, topic_id=UUID(int=0x2DE5))
    event = TopicPolicyChanged(event_id=world.new_id(), policy=again)
    assert world.metadata.publish(event).accepted
    world.delete_topic()

    world.minutes(10)
    world.clock.advance(ORPHAN_GRACE_MS)
    world.minutes(2)

    assert topic_policies(world.metadata) == (again,)
    assert world.object_names() == []


def test_copy_when_it_comes_late_to_a_deleted_topic_then_refused_and_forgotten() -> None:
    """Scenario 106: a refused record of a copy does not delay the removal."""
    world, _ = stored_world()
    (first, *_) = world.records()
    world.delete_topic()
    world.minutes(10)
    late = replace(
        first.metadata,
        segment_id=replace(first.metadata.segment_id, id=world.new_id()),
        state=SegmentState.COPY_SEGMENT_STARTED,
    )

    result = world.metadata.publish(SegmentEvent(event_id=world.new_id(), metadata=late))
    world.clock.advance(ORPHAN_GRACE_MS)
    world.minutes(2)

    assert result.refusal == "partition_deleted"
    assert removed(world)
    assert kinds_left(world) == {RecordKind.PARTITION_DELETE}


def test_removal_when_another_marked_it_then_carried_on() -> None:
    """Scenario 76: any process finishes what another began."""
    world, _ = stored_world()
    mark = RemotePartitionDeleteMetadata(
        event_id=world.new_id(),
        topic_id_partition=TIP,
        state=MARKED,
        event_timestamp_ms=0,
        broker_id=9,
    )
    assert world.metadata.publish(mark).accepted
    world.delete_topic()

    world.minutes(10)

    assert world.state().deletion is FINISHED


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(45))
def test_removal_when_killed_at_any_effect_then_a_restart_finishes_it(
    number: int, *, after: bool
) -> None:
    """Scenario 76: the whole removal, once with a crash at each effect."""
    world, started = stored_world()
    process: Process = started
    world.delete_topic()
    process.effects.performed.clear()
    process.effects.at(Moment(number=number, after=after), process.effects.crash)

    for _ in range(3):
        world.minutes(7)
        world.clock.advance(ORPHAN_GRACE_MS)
        world.minutes(1)
        if not process.alive:
            process = world.restart()

    assert removed(world)
    assert kinds_left(world) == {RecordKind.PARTITION_DELETE}
