"""Queries while the metadata is dropped or not read yet get an error, never an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.state.partition_state import PartitionState
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.hosted_partitions import user_partitions
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import ORDERS, policy

_PARTITIONS = 4


class InterruptedCache(MetadataCache):
    """Runs `meanwhile` within each answer."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.meanwhile: Callable[[], object] = lambda: None

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        self.meanwhile()
        return super().partition_state(topic_id_partition)


def manager_of(cache: MetadataCache) -> TopicBasedRemoteLogMetadataManager:
    """Return a manager without a thread that follows only the hosted partitions."""
    clock = ManualClock()
    settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0), follows_all=False)
    topic = MemoryTopic(MemoryLog(clock, partition_count=_PARTITIONS))
    return TopicBasedRemoteLogMetadataManager(topic, cache, clock, settings)


def test_answer_when_the_partition_is_dropped_meanwhile_then_error() -> None:
    """The cache may have been empty in between."""
    cache = InterruptedCache()
    manager = manager_of(cache)
    assert manager.wait_ready(10_000).is_ready
    (hosted,) = user_partitions(1, _PARTITIONS, 1)
    manager.on_partition_leadership_changes([hosted], [])
    assert manager.caught_up(hosted)
    assert manager.partition_state(hosted) == PartitionState()

    def drop() -> None:
        manager.on_stop_partitions([hosted])
        assert manager.publish(policy()).accepted, "the wait for this event drops the partition"

    cache.meanwhile = drop

    with pytest.raises(RetriableError, match="metadata was dropped"):
        manager.partition_state(hosted)


def test_partitions_of_when_the_topic_was_not_found_yet_then_error() -> None:
    manager = manager_of(InterruptedCache())

    with pytest.raises(RetriableError, match="not ready"):
        manager.partitions_of(ORDERS.topic_id, ORDERS.topic)
