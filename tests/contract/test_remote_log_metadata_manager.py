from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from tests.contract.configured_plugins import plugin_metadata
from tests.contract.metadata_assignment_contract import MetadataAssignmentContract
from tests.contract.metadata_caches import STORES
from tests.contract.metadata_manager_contract import (
    MetadataManagerContract,
    MetadataThreadsContract,
    OpenManager,
)
from tests.contract.metadata_semantics_contract import MetadataSemanticsContract
from tests.log_dir_builder import ManualClock

FOLLOWED = ("thread", "stepped")


@pytest.fixture
def following(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The cache's store, and who follows the topic: a thread, or the caller that waits.

    A plug-in follows like a manager without a thread.
    """
    params: tuple[str, str] = request.param
    return params


@pytest.fixture
def open_manager(following: tuple[str, str], tmp_path: Path) -> Iterator[OpenManager]:
    store, driver = following
    clock = ManualClock()
    log = MemoryLog(clock, partition_count=3)
    opened: list[TopicBasedRemoteLogMetadataManager] = []

    def open_manager(
        process: str = "one", *, tombstone_grace_ms: int = 0, follows_all: bool = True
    ) -> TopicBasedRemoteLogMetadataManager:
        made = TopicBasedRemoteLogMetadataManager if driver != "plug-in" else plugin_metadata
        manager = made(
            MemoryTopic(log),
            MetadataCache(STORES[store](tmp_path / process)),
            clock,
            ManagerSettings(
                follows_all=follows_all,
                tombstone_grace_ms=tombstone_grace_ms,
                follower=FollowerSettings(poll_timeout_ms=50),
            ),
        )
        opened.append(manager)
        if driver == "thread":
            manager.start()
        assert manager.wait_ready(20_000).is_ready
        return manager

    yield open_manager
    for manager in opened:
        manager.close()


@pytest.mark.parametrize(
    "following", [(s, t) for s in STORES for t in FOLLOWED], ids="-".join, indirect=True
)
class TestMemoryTopicManager(
    MetadataManagerContract, MetadataSemanticsContract, MetadataAssignmentContract
):
    """The suite, over a topic in memory and each cache."""


@pytest.mark.parametrize("following", [("memory", "plug-in")], ids="-".join, indirect=True)
class TestPluginManager(
    MetadataManagerContract, MetadataSemanticsContract, MetadataAssignmentContract
):
    """The suite, over the plug-in."""


@pytest.mark.parametrize("following", [(s, "thread") for s in STORES], ids="-".join, indirect=True)
class TestStartedMemoryTopicManager(MetadataThreadsContract):
    """The suite of managers with a thread of their own, over each cache."""
