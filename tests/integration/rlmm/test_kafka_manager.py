from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.spi import UnreadyReason
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import NotFoundError, RetriableError
from rsm.system_clock import SystemClock
from tests.contract.event_topic_contract import OpenTopic
from tests.contract.metadata_assignment_contract import MetadataAssignmentContract
from tests.contract.metadata_caches import SMALL
from tests.contract.metadata_manager_contract import (
    MetadataManagerContract,
    MetadataThreadsContract,
    OpenManager,
)
from tests.contract.metadata_semantics_contract import MetadataSemanticsContract
from tests.integration.rlmm.ensured_topic import ensured
from tests.metadata_builder import FINISHED, ORDERS, STARTED, claim, segment_metadata, step
from tests.services.kafka import KafkaCluster, admin_client, set_topic_configs
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

FOLLOWER = FollowerSettings(poll_timeout_ms=100, check_interval_ms=500, retry_backoff_max_ms=500)


@pytest.fixture
def open_manager(open_topic: OpenTopic, tmp_path: Path) -> Iterator[OpenManager]:
    opened: list[TopicBasedRemoteLogMetadataManager] = []

    def open_manager(
        process: str = "one", *, tombstone_grace_ms: int = 0, follows_all: bool = True
    ) -> TopicBasedRemoteLogMetadataManager:
        manager = TopicBasedRemoteLogMetadataManager(
            open_topic(),
            MetadataCache(RocksDbStore(tmp_path / process, SMALL)),
            SystemClock(),
            ManagerSettings(
                follows_all=follows_all, tombstone_grace_ms=tombstone_grace_ms, follower=FOLLOWER
            ),
        )
        opened.append(manager)
        manager.start()
        readiness = manager.wait_ready(30_000)
        assert readiness.is_ready, readiness.reason
        return manager

    yield open_manager
    for manager in opened:
        manager.close()


class TestKafkaManager(
    MetadataManagerContract,
    MetadataThreadsContract,
    MetadataSemanticsContract,
    MetadataAssignmentContract,
):
    """The contract of managers, over a real broker and RocksDB."""


def test_cache_when_its_directory_is_lost_then_is_rebuilt_with_the_same_lookups(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """Scenario 36."""
    segments = [segment_metadata(n, n * 10, n * 10 + 15) for n in range(20)]
    first = open_manager()
    first.publish(claim())
    for segment in segments:
        first.publish(step(segment, FINISHED))
    expected = [
        first.remote_log_segment_metadata(ORDERS, offset, leader_epoch=0) for offset in range(220)
    ]
    first.close()
    shutil.rmtree(tmp_path / "one")

    again = open_manager()

    found = [
        again.remote_log_segment_metadata(ORDERS, offset, leader_epoch=0) for offset in range(220)
    ]
    assert found == expected
    assert again.metrics().applied_events_count == len(segments) + 1


def test_cache_when_opened_again_then_reads_only_what_is_new(open_manager: OpenManager) -> None:
    """The manager continues from the checkpoint, because positions are written with the data."""
    first = open_manager()
    first.publish(step(segment_metadata(1), FINISHED))
    first.close()

    again = open_manager()

    assert again.metrics().applied_events_count == 0
    assert len(list(again.list_remote_log_segments(ORDERS))) == 1


def test_cache_when_the_topic_was_recreated_meanwhile_then_is_rebuilt(
    open_manager: OpenManager,
    kafka: KafkaCluster,
    topic_settings: TopicSettings,
    tmp_path: Path,
) -> None:
    """Scenario 37: the topic's id shows this; nothing is merged, and the old cache is kept."""
    first = open_manager()
    first.publish(step(segment_metadata(1), FINISHED))
    first.close()
    delete_topic(kafka, topic_settings)
    create_topic(kafka, topic_settings)

    again = open_manager()

    assert again.metrics().rebuilds_count == 1
    assert list(again.list_remote_log_segments(ORDERS)) == []
    assert again.publish(step(segment_metadata(2), FINISHED)).accepted
    assert len(list(tmp_path.glob("one.*"))) == 1


def test_cache_when_the_topic_is_recreated_under_it_then_is_rebuilt(
    open_manager: OpenManager, kafka: KafkaCluster, topic_settings: TopicSettings, tmp_path: Path
) -> None:
    """Scenario 37, while running."""
    manager = open_manager()
    manager.publish(step(segment_metadata(1), FINISHED))

    delete_topic(kafka, topic_settings)
    create_topic(kafka, topic_settings)

    wait_until(
        lambda: manager.metrics().rebuilds_count and manager.readiness().is_ready,
        60.0,
        lambda: f"a rebuilt cache: {manager.readiness()}, {manager.metrics()}",
    )
    assert list(manager.list_remote_log_segments(ORDERS)) == []
    assert len(list(tmp_path.glob("one.*"))) == 1


def test_topic_when_deleted_under_a_manager_then_is_not_created_again_and_the_cache_stays(
    open_manager: OpenManager, kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """Scenario 37: all processes would take an empty new topic for the true state."""
    manager = open_manager()
    manager.publish(step(segment_metadata(1), FINISHED))

    delete_topic(kafka, topic_settings)

    wait_until(
        lambda: "followed is gone" in manager.readiness().reason,
        60.0,
        lambda: f"the reason: {manager.readiness()}",
    )
    failures_count = manager.metrics().failures_count
    wait_until(
        lambda: manager.metrics().failures_count >= failures_count + 3, 30.0, "further attempts"
    )
    topics = admin_client(kafka.bootstrap_servers).list_topics(timeout=30.0).topics
    assert topic_settings.name not in topics
    assert len(list(manager.list_remote_log_segments(ORDERS))) == 1


def test_topic_when_its_shape_is_changed_under_a_manager_then_nothing_is_written_until_restored(
    open_manager: OpenManager, kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """Scenario 40, while running: the reason names both shapes; the cache still answers."""
    manager = open_manager()
    manager.publish(step(segment_metadata(1), FINISHED))
    before = manager.metrics().positions
    admin = admin_client(kafka.bootstrap_servers)

    set_topic_configs(admin, topic_settings.name, {"cleanup.policy": "compact,delete"})

    wait_until(lambda: not manager.readiness().is_ready, 30.0, "the end of readiness")
    readiness = manager.readiness()
    assert readiness.kind is UnreadyReason.WRONG_SHAPE
    assert "expected=compact, found=compact,delete" in readiness.reason
    with pytest.raises(RetriableError, match=r"not ready.*cleanup\.policy"):
        manager.publish(step(segment_metadata(2), FINISHED))
    assert len(list(manager.list_remote_log_segments(ORDERS))) == 1
    set_topic_configs(admin, topic_settings.name, {"cleanup.policy": "compact"})
    assert manager.wait_ready(30_000).is_ready
    assert manager.metrics().positions == before


def test_manager_when_the_broker_comes_late_then_becomes_ready_by_itself(
    services: ServiceProvider, tmp_path: Path
) -> None:
    """Scenarios 33, 34: not ready, then ready.

    While the broker is away again, queries still work, and no copy begins, because its first event
    cannot be written.
    """
    cluster = services.kafka(tmp_path / "kafka")
    topic = KafkaTopic(
        {"bootstrap.servers": cluster.bootstrap_servers, "reconnect.backoff.max.ms": "500"},
        TopicSettings(partition_count=2, replication_factor=1),
        KafkaTimeouts(request_ms=2_000, delivery_ms=15_000),
    )
    manager = TopicBasedRemoteLogMetadataManager(
        topic,
        MetadataCache(RocksDbStore(tmp_path / "cache", SMALL)),
        SystemClock(),
        ManagerSettings(follower=FOLLOWER),
    )
    manager.start()
    assert not manager.wait_ready(3_000).is_ready
    with cluster:
        readiness = manager.wait_ready(60_000)
        assert readiness.is_ready, readiness.reason
        manager.publish(step(segment_metadata(1), FINISHED))

    with pytest.raises(RetriableError):
        manager.publish(step(segment_metadata(2), STARTED))

    assert manager.remote_log_segment_metadata(ORDERS, 5, leader_epoch=0) is not None
    manager.close()


def test_cache_when_the_topic_was_cut_and_grew_again_then_is_rebuilt(
    services: ServiceProvider, tmp_path: Path
) -> None:
    """Scenario 37, R12: id and length do not show this, but the end of the epoch does."""
    cluster = services.kafka(tmp_path / "kafka")

    def opened(process: str) -> TopicBasedRemoteLogMetadataManager:
        manager = TopicBasedRemoteLogMetadataManager(
            KafkaTopic(
                {"bootstrap.servers": cluster.bootstrap_servers},
                TopicSettings(partition_count=1, replication_factor=1),
            ),
            MetadataCache(RocksDbStore(tmp_path / process, SMALL)),
            SystemClock(),
            ManagerSettings(follower=FOLLOWER),
        )
        manager.start()
        readiness = manager.wait_ready(30_000)
        assert readiness.is_ready, readiness.reason
        return manager

    lost, other = segment_metadata(1), segment_metadata(2)
    with cluster:
        first = opened("one")
        first.publish(step(lost, FINISHED))
        first.close()
        cluster.broker.stop()
        lose_records(cluster.broker.log_dirs[0] / f"{TopicSettings().name}-0")
        cluster.restart(cluster.broker)
        writer = opened("another")
        for event in (claim(), step(other, FINISHED), claim()):
            writer.publish(event)
        writer.close()

        again = opened("one")

        listed = [each.metadata.segment_id for each in again.list_remote_log_segments(ORDERS)]
        assert listed == [other.segment_id]
        assert again.metrics().rebuilds_count == 1
        assert len(list(tmp_path.glob("one.*"))) == 1
        again.close()


def lose_records(partition_directory: Path) -> None:
    """Delete the files in a partition's directory, as after a loss of unflushed data."""
    for each in partition_directory.iterdir():
        if each.name != "partition.metadata":
            each.unlink()


def delete_topic(kafka: KafkaCluster, settings: TopicSettings) -> None:
    admin = admin_client(kafka.bootstrap_servers)
    admin.delete_topics([settings.name])[settings.name].result(30.0)


def create_topic(kafka: KafkaCluster, settings: TopicSettings) -> None:
    """Create the topic again, once all brokers know of the deletion."""
    topic = KafkaTopic({"bootstrap.servers": kafka.bootstrap_servers}, settings)
    try:
        wait_until(lambda: _is_missing(topic), 30.0, "the end of the old topic")
        ensured(topic)
    finally:
        topic.close()


def _is_missing(topic: KafkaTopic) -> bool:
    try:
        topic.ensure(create=False)
    except NotFoundError:
        return True
    return False
