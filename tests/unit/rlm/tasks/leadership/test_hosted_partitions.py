from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from rlm.tasks.leadership.hosted_partitions import HostedPartitions
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.fakes.log_source import MemoryLogSource
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import ORDERS

LED, FOLLOWED, GONE = (replace(ORDERS, partition=number) for number in range(3))
UNTIERED = TopicIdPartition(topic_id=UUID(int=9), topic="other", partition=0)
TIERED = {ORDERS.topic_id}


class Hosts(MemoryLogSource):
    """Reports scripted partitions as hosted."""

    def __init__(self) -> None:
        super().__init__({})
        self.here: tuple[TopicIdPartition, ...] | None = ()

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        if self.here is None:
            raise RetriableError("log dir is offline")
        return self.here


class RecordedCalls(TopicBasedRemoteLogMetadataManager):
    """Remembers its calls."""

    def __init__(self) -> None:
        clock = ManualClock()
        super().__init__(MemoryTopic(MemoryLog(clock)), MetadataCache(MemoryStore()), clock)
        self.leaders: set[TopicIdPartition] = set()
        self.followers: set[TopicIdPartition] = set()

    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        self.leaders |= set(leaders)
        self.followers |= set(followers)

    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        gone = set(partitions)
        self.leaders -= gone
        self.followers -= gone


class World:
    def __init__(self) -> None:
        self.source, self.metadata = Hosts(), RecordedCalls()
        self.hosted = HostedPartitions(self.source, self.metadata)

    @property
    def recorded(self) -> tuple[set[TopicIdPartition], set[TopicIdPartition]]:
        return self.metadata.leaders, self.metadata.followers


def test_partitions_when_hosted_then_are_reported_by_role_and_only_those_of_tiered_topics() -> None:
    world = World()
    world.source.here = (LED, FOLLOWED, UNTIERED)

    followed = world.hosted.step([LED], TIERED)

    assert followed == (FOLLOWED,)
    assert world.recorded == ({LED}, {FOLLOWED})


def test_partition_when_it_is_gone_then_is_stopped() -> None:
    """Scenario 88: moved to another broker."""
    world = World()
    world.source.here = (LED, FOLLOWED, GONE)
    world.hosted.step([LED], TIERED)
    world.source.here = (LED, FOLLOWED)

    world.hosted.step([LED], TIERED)

    assert world.recorded == ({LED}, {FOLLOWED})


def test_topic_when_tiered_no_longer_then_its_partitions_are_stopped() -> None:
    world = World()
    world.source.here = (LED, FOLLOWED)
    world.hosted.step([LED], TIERED)

    world.hosted.step([], ())

    assert world.recorded == (set(), set())


def test_log_dirs_when_they_cannot_be_read_then_nothing_is_stopped() -> None:
    """An offline log dir is not an empty one, and must not stop the work on led partitions."""
    world = World()
    world.source.here = (LED, FOLLOWED)
    world.hosted.step([LED], TIERED)
    world.source.here = None

    followed = world.hosted.step([GONE], TIERED)

    assert followed == ()
    assert world.recorded == ({LED, GONE}, {FOLLOWED})


def test_partition_when_led_while_log_dirs_cannot_be_read_then_is_stopped_once_it_is_gone() -> None:
    world = World()
    world.source.here = None
    world.hosted.step([GONE], TIERED)
    world.source.here = (LED,)

    world.hosted.step([LED], TIERED)

    assert world.recorded == ({LED}, set())
