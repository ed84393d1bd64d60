"""Writes without a response: nothing is repeated before their result is known."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event, Thread

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.codec import encode
from rlmm.events.event import Event as MetadataEvent
from rlmm.events.policy import topic_policies
from rlmm.events.registration import registrations
from rlmm.known_writes import KnownWrites, barrier_key
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import event_partition, is_misplaced, metadata_partition
from rlmm.topic.event_topic import PublishedPosition, UnknownResultError
from rlmm.topic.memory import MemoryLog
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from tests.folding import append, folded, log_of
from tests.log_dir_builder import ManualClock
from tests.lossy_topic import Fate, LossyTopic
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    DELETING,
    FINISHED,
    MARKED,
    ORDERS,
    STARTED,
    claim,
    gap,
    gaps,
    life,
    log_start,
    log_start_request,
    loss_accepted,
    offload_request,
    partition_delete,
    paused,
    policy,
    read_lease,
    registration,
    segment_metadata,
    step,
    trim,
)

SEGMENT = segment_metadata()
PARTITION_COUNT = 50


class Unanswered:
    """A manager over a topic whose next writes have these fates."""

    def __init__(self, *fates: Fate, partition_count: int = 1) -> None:
        clock = ManualClock()
        self.log = MemoryLog(clock, partition_count=partition_count)
        self.topic = LossyTopic(self.log)
        self.manager = TopicBasedRemoteLogMetadataManager(
            self.topic,
            MetadataCache(MemoryStore()),
            clock,
            ManagerSettings(consume_wait_ms=1_000, tombstone_grace_ms=0),
        )
        assert self.manager.wait_ready(1_000).is_ready
        assert self.manager.publish(claim()).accepted
        self.topic.fates.extend(fates)

    def written(self, event: MetadataEvent) -> int:
        """Return how often an event is in the topic."""
        key = encode(event).key
        return sum(record.key == key for record in self.log.records(0))

    def tombstones(self) -> int:
        """Return the number of barriers in the topic."""
        return sum(record.value is None for record in self.log.records(0))


def test_publish_when_only_the_answer_is_lost_then_says_what_came_of_it() -> None:
    """Scenario 119: the topic is read, and the event is in it, once."""
    world = Unanswered(Fate.WRITTEN)
    event = trim(10)

    assert world.manager.publish(event).accepted
    assert world.written(event) == 1


def test_publish_when_a_refused_event_has_no_answer_then_is_refused() -> None:
    world = Unanswered(Fate.WRITTEN)

    result = world.manager.publish(step(SEGMENT, DELETE_STARTED, expected_state=FINISHED))

    assert result.refusal == "unknown_segment"


def test_publish_when_the_record_was_lost_then_says_so_and_does_not_write_it_again() -> None:
    world = Unanswered(Fate.LOST)
    event = trim(10)

    with pytest.raises(RetriableError, match="was not written") as raised:
        world.manager.publish(event)

    assert not isinstance(raised.value, UnknownResultError)
    assert world.written(event) == 0


def test_publish_when_nothing_is_answered_then_is_unknown_and_the_next_reads_past_it_first() -> (
    None
):
    world = Unanswered(Fate.WRITTEN, Fate.LOST)
    first, second = trim(10), trim(20)

    with pytest.raises(UnknownResultError, match="it may still arrive"):
        world.manager.publish(first)
    before_count = world.tombstones()
    assert world.manager.publish(second).accepted

    keys = [record.key for record in world.log.records(0)]
    barrier = barrier_key(encode(first).key)
    assert before_count == 0
    assert keys.index(encode(first).key) < keys.index(barrier) < keys.index(encode(second).key)


def test_publish_when_an_earlier_result_stays_unknown_then_writes_nothing() -> None:
    """This is so as long as the cluster is unreachable, whatever the caller tries."""
    world = Unanswered(*[Fate.LATE] * 3)
    end_offset = world.log.end_offset(0)
    repeated = trim(10)
    with pytest.raises(UnknownResultError):
        world.manager.publish(trim(10))

    with pytest.raises(UnknownResultError, match="result of an earlier write is not known"):
        world.manager.publish(repeated)

    world.topic.deliver_late()
    assert world.log.end_offset(0) == end_offset + 3  # one event and two barriers
    assert world.written(repeated) == 0


def test_publish_when_another_metadata_partition_is_unknown_then_writes() -> None:
    world = Unanswered(partition_count=2)
    first, second = (_partition_on(number) for number in (0, 1))
    world.topic.fates.extend([Fate.LOST, Fate.LOST])
    with pytest.raises(UnknownResultError):
        world.manager.publish(claim(partition=first))

    assert world.manager.publish(claim(partition=second)).accepted


def _partition_on(metadata_partition_number: int) -> TopicIdPartition:
    """Return a user partition whose records are on this one of two metadata partitions."""
    return next(
        found
        for number in range(100)
        if metadata_partition(found := replace(ORDERS, partition=number), 2)
        == metadata_partition_number
    )


def test_purge_when_a_tombstone_has_no_answer_then_is_written_again_after_a_barrier() -> None:
    world = Unanswered()
    for event in life(SEGMENT):
        assert world.manager.publish(event).accepted
    world.topic.fates.append(Fate.LOST)
    with pytest.raises(UnknownResultError):
        world.manager.write_tombstones(SEGMENT.segment_id)

    world.manager.write_tombstones(SEGMENT.segment_id)

    world.manager.caught_up(ORDERS)
    assert world.manager.segment(SEGMENT.segment_id) is None


def test_settle_when_another_write_is_lost_meanwhile_then_is_not_known() -> None:
    """That write may arrive after the barrier."""
    topic = LossyTopic(MemoryLog(ManualClock()))
    record = encode(claim())
    pending, may_end = Event(), Event()

    def lose() -> None:
        topic.fates.append(Fate.LOST)
        with pytest.raises(UnknownResultError):
            writes.publish(0, record.key, record.value)

    def wait_first() -> None:
        topic.before_write = lambda: None
        pending.set()
        assert may_end.wait(30)

    def read_past(_: PublishedPosition) -> bool:
        topic.fates.append(Fate.LOST)
        may_end.set()
        other.join(30)
        return True

    writes = KnownWrites(topic, read_past)
    other = Thread(target=lambda: _raises_unknown(writes))
    topic.before_write = wait_first
    other.start()
    assert pending.wait(30)
    lose()

    with pytest.raises(UnknownResultError, match="further writes"):
        writes.settle(0)


def _raises_unknown(writes: KnownWrites) -> None:
    record = encode(claim())
    with pytest.raises(UnknownResultError):
        writes.publish(0, record.key, record.value)


ALL_KINDS: list[MetadataEvent] = [
    *life(SEGMENT),
    claim(),
    trim(1),
    log_start(1),
    log_start_request(1),
    partition_delete(MARKED),
    read_lease(),
    gaps(gap(0, 5)),
    loss_accepted(1),
    offload_request(5),
    paused(),
    policy(),
    registration(),
]


def test_settle_when_two_writers_settle_one_write_at_once_then_both_continue() -> None:
    both_read = Barrier(2)
    topic = LossyTopic(MemoryLog(ManualClock(), partition_count=1))

    def read_past(_written: PublishedPosition) -> bool:
        both_read.wait(30)  # Both barriers are read back before one of the writers continues.
        return True

    writes = KnownWrites(topic, read_past)
    topic.fates.append(Fate.LOST)
    with pytest.raises(UnknownResultError):
        writes.publish(0, encode(trim(10)).key, b"")

    with ThreadPoolExecutor(2) as writers:
        settled = [writers.submit(writes.settle, 0) for _ in range(2)]

    assert [each.result() for each in settled] == [None, None]


@pytest.mark.parametrize("event", ALL_KINDS, ids=lambda event: type(event).__name__)
def test_barrier_when_written_for_an_event_then_belongs_to_its_partition_and_changes_nothing(
    event: MetadataEvent,
) -> None:
    partition = event_partition(event, PARTITION_COUNT)
    key = barrier_key(encode(event).key)
    log = log_of(*ALL_KINDS)
    before = folded(log)

    log.append(0, key, None)
    after = folded(log)

    assert not is_misplaced(key, partition, PARTITION_COUNT)
    assert after.partition_state(ORDERS) == before.partition_state(ORDERS)
    assert dict(after.entries(ORDERS)) == dict(before.entries(ORDERS))
    assert topic_policies(after) == topic_policies(before)
    assert registrations(after) == registrations(before)


_STARTED, _FINISHED, _DELETED, _GONE = life(SEGMENT)
REPEATED: list[tuple[list[MetadataEvent], Callable[[], MetadataEvent]]] = [
    ([], claim),
    ([claim()], lambda: trim(10)),
    ([claim()], lambda: log_start(10)),
    ([claim()], lambda: gaps(gap(0, 5))),
    ([claim()], lambda: log_start_request(10)),
    ([claim()], lambda: offload_request(10)),
    ([claim()], lambda: loss_accepted(1)),
    ([], lambda: partition_delete(MARKED)),
    ([partition_delete(MARKED)], lambda: partition_delete(DELETING)),
    ([claim(), _STARTED], lambda: step(SEGMENT, FINISHED)),
    ([claim(), _STARTED], lambda: step(SEGMENT, STARTED)),
    (
        [claim(), _STARTED, _FINISHED],
        lambda: step(SEGMENT, DELETE_STARTED, expected_state=SegmentState.COPY_SEGMENT_FINISHED),
    ),
    ([claim(), _STARTED, _FINISHED, _DELETED], lambda: step(SEGMENT, DELETE_FINISHED)),
    ([], paused),
    ([], policy),
    ([], registration),
]


@pytest.mark.parametrize(("before", "decide"), REPEATED)
def test_repeat_when_the_first_write_comes_in_late_then_all_is_as_after_one(
    before: list[MetadataEvent], decide: Callable[[], MetadataEvent]
) -> None:
    """R13: a record that arrives after the barrier has another id and the same content."""
    late, repeated = decide(), decide()
    log = log_of(*before, repeated)
    once = folded(log)
    state, segment = once.partition_state(ORDERS), once.segment_entry(SEGMENT.segment_id)

    append(log, late)
    twice = folded(log)

    found = twice.segment_entry(SEGMENT.segment_id)
    assert twice.partition_state(ORDERS) == state
    assert (found and found.state) == (segment and segment.state)
    assert topic_policies(twice) == topic_policies(once)
    assert [each.process.process_id for each in registrations(twice)] == [
        each.process.process_id for each in registrations(once)
    ]
