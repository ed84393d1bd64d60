"""Questions while the metadata is being dropped or is not there yet: an error, never an answer."""

from __future__ import annotations

from itertools import count

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follower import Follower, FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.partition_state import PartitionState
from rlmm.partitioner import metadata_partition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import ORDERS


@pytest.fixture
def manager() -> TopicBasedRemoteLogMetadataManager:
    clock = ManualClock()
    settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
    cache = MetadataCache(MemoryStore())
    return TopicBasedRemoteLogMetadataManager(MemoryTopic(MemoryLog(clock)), cache, clock, settings)


def test_answer_when_the_partition_was_dropped_and_read_again_meanwhile_then_error(
    manager: TopicBasedRemoteLogMetadataManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the cache had in between may have been nothing."""
    assert manager.wait_ready(10_000).ready
    assert manager.partition_state(ORDERS) == PartitionState()
    assert manager.identity is not None
    partition = metadata_partition(ORDERS, manager.identity.partition_count)
    catching_up = count()
    monkeypatch.setattr(Follower, "caught_up", property(lambda _: {partition: next(catching_up)}))

    with pytest.raises(RetriableError, match="dropped meanwhile"):
        manager.partition_state(ORDERS)


def test_partitions_of_when_the_topic_was_not_found_yet_then_error(
    manager: TopicBasedRemoteLogMetadataManager,
) -> None:
    with pytest.raises(RetriableError, match="not ready"):
        manager.partitions_of(ORDERS.topic_id, ORDERS.topic)
