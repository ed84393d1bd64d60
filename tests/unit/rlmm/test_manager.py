from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rlmm.positions import CLUSTER_PARTITION
from rlmm.topic.event_topic import PublishedPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError
from tests.follower_world import FaultyStore
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    life,
    log_start,
    registration,
    segment_metadata,
    step,
    trim,
)

SEGMENT = segment_metadata()


class SilentTopic(MemoryTopic):
    """Takes a record and lets it appear only later."""

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        return PublishedPosition(partition=partition, offset=0)


class FailingTombstones(MemoryTopic):
    """Refuses tombstones after a number of them."""

    left_count = 0

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        if value is None:
            if self.left_count == 0:
                raise RetriableError("no broker")
            self.left_count -= 1
        return super().publish(partition, key, value)


class AskedTopic(MemoryTopic):
    """Counts how often it is asked for its ends; they are farther than what can be read."""

    asked_count = 0
    unread_count = 0

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        self.asked_count += 1
        ends = super().end_offsets(partitions)
        return {number: end + self.unread_count for number, end in ends.items()}


def open_manager(
    topic: MemoryTopic, *, tombstone_grace_ms: int = 0, consume_wait_ms: int = 1_000
) -> TopicBasedRemoteLogMetadataManager:
    settings = ManagerSettings(
        tombstone_grace_ms=tombstone_grace_ms, consume_wait_ms=consume_wait_ms
    )
    return TopicBasedRemoteLogMetadataManager(
        topic, MetadataCache(MemoryStore()), ManualClock(), settings
    )


def test_publish_when_not_ready_then_writes_nothing() -> None:
    """Scenarios 33, 40: nothing is published before all that came before is known."""
    log = MemoryLog(ManualClock())

    with pytest.raises(RetriableError, match="not ready"):
        open_manager(MemoryTopic(log)).publish(claim())

    assert log.end_offset(0) == 0


def test_publish_when_not_read_back_in_time_then_nothing_is_concluded() -> None:
    """Scenario 14: an unknown result is neither accepted nor refused."""
    log = MemoryLog(ManualClock())
    manager = open_manager(SilentTopic(log), consume_wait_ms=20)
    manager.start()
    manager.wait_ready(10_000)

    with pytest.raises(RetriableError, match="read back"):
        manager.publish(claim())

    manager.close()


def test_publish_when_tombstones_fail_then_the_event_is_accepted_all_the_same() -> None:
    manager = open_manager(FailingTombstones(MemoryLog(ManualClock())))
    manager.wait_ready(1_000)
    manager.publish(claim())
    manager.publish(trim(10))

    assert manager.publish(trim(20)).accepted


def test_log_start_when_superseded_then_its_older_record_is_tombstoned() -> None:
    log = MemoryLog(ManualClock())
    manager = open_manager(MemoryTopic(log))
    manager.wait_ready(1_000)
    manager.publish(claim())
    manager.publish(log_start(10))

    manager.publish(log_start(20))

    assert [record.value is None for record in log.records(0)] == [False, False, False, True]


def test_retirement_when_it_fails_half_way_then_the_next_one_ends_it() -> None:
    topic = FailingTombstones(MemoryLog(ManualClock()))
    manager = open_manager(topic)
    manager.wait_ready(1_000)
    manager.publish(claim())
    for event in life(SEGMENT):
        manager.publish(event)
    topic.left_count = 2
    with pytest.raises(RetriableError):
        manager.write_tombstones(SEGMENT.segment_id)
    assert manager.caught_up(ORDERS)
    topic.left_count = 10

    manager.write_tombstones(SEGMENT.segment_id)

    assert manager.caught_up(ORDERS)
    assert manager._cache.segment_entry(SEGMENT.segment_id) is None


def test_retirement_when_it_fails_half_way_then_that_of_another_segment_ends_it() -> None:
    """The search for removable segments no longer finds this one."""
    topic = FailingTombstones(MemoryLog(ManualClock()))
    manager = open_manager(topic)
    manager.wait_ready(1_000)
    manager.publish(claim())
    other = segment_metadata(2)
    for event in (*life(SEGMENT), *life(other)):
        manager.publish(event)
    topic.left_count = 2
    with pytest.raises(RetriableError):
        manager.write_tombstones(SEGMENT.segment_id)
    assert manager.caught_up(ORDERS)
    assert [*manager._cache.partly_tombstoned(ORDERS)]
    topic.left_count = 10

    manager.write_tombstones(other.segment_id)

    assert manager.caught_up(ORDERS)
    assert [*manager._cache.entries(ORDERS)] == []


def test_publish_when_the_cache_cannot_be_written_then_fails_at_once() -> None:
    store, clock = FaultyStore(), ManualClock()
    log = MemoryLog(clock)
    settings = ManagerSettings(consume_wait_ms=600_000)
    manager = TopicBasedRemoteLogMetadataManager(
        MemoryTopic(log), MetadataCache(store), clock, settings
    )
    manager.wait_ready(1_000)
    started_ms = clock.monotonic_ms()
    store.disk_full = True
    with pytest.raises(RetriableError, match="read back"):
        manager.publish(claim())

    with pytest.raises(RetriableError, match=r"not ready.*cannot be used"):
        manager.publish(claim())

    assert log.end_offset(0) == 1
    assert clock.monotonic_ms() - started_ms < 1_000


def test_caught_up_when_not_ready_then_says_no() -> None:
    assert not open_manager(MemoryTopic(MemoryLog(ManualClock()))).caught_up(ORDERS)


def test_manager_when_closed_then_nobody_waits_any_longer() -> None:
    log = MemoryLog(ManualClock())
    manager = open_manager(SilentTopic(log), consume_wait_ms=600_000)
    manager.start()
    manager.wait_ready(10_000)
    manager.close()

    with pytest.raises(RetriableError):
        manager.publish(step(SEGMENT, FINISHED))


def test_caught_up_when_asked_of_many_then_the_topic_is_asked_once() -> None:
    topic = AskedTopic(MemoryLog(ManualClock()))
    manager = open_manager(topic)
    manager.wait_ready(1_000)
    before_count = topic.asked_count
    many = [replace(ORDERS, partition=number) for number in range(50)]

    assert manager.those_caught_up(many) == frozenset(many)
    assert topic.asked_count == before_count + 1


def test_caught_up_when_the_end_is_not_read_in_time_then_says_no_after_that_time() -> None:
    """The manager's limit for its own events does not matter."""
    topic = AskedTopic(MemoryLog(ManualClock()))
    manager = open_manager(topic, consume_wait_ms=600_000)
    manager.start()
    manager.wait_ready(10_000)
    topic.unread_count = 1

    assert not manager.caught_up(ORDERS, timeout_ms=20)

    manager.close()


def test_cluster_time_when_records_of_other_partitions_are_newer_then_stays() -> None:
    """Live processes must not look gone while their heartbeats cannot be read."""
    clock = ManualClock()
    topic = MemoryTopic(MemoryLog(clock, partition_count=3))
    manager = TopicBasedRemoteLogMetadataManager(topic, MetadataCache(MemoryStore()), clock)
    assert manager.wait_ready(1_000).is_ready
    assert manager.cluster_time_ms() == 0
    assert manager.publish(registration()).accepted
    registered_ms = manager.cluster_time_ms()
    clock.sleep_ms(60_000)
    tips = (replace(ORDERS, partition=number) for number in range(10))
    tip = next(tip for tip in tips if metadata_partition(tip, 3) != CLUSTER_PARTITION)

    assert manager.publish(step(segment_metadata(partition=tip), STARTED)).accepted

    assert 0 < registered_ms == manager.cluster_time_ms() < manager.broker_time_ms()
