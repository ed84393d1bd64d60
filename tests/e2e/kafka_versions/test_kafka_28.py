"""What only Kafka 2.8 has: topics without ids, ids written late, old message formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.e2e.kafka_versions.topic_ids import (
    wait_for_topic_ids,
    without_topic_id,
    write_topic_ids,
)
from tests.e2e.kafka_versions.topic_retention import WEEK, retention_of
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaBroker, KafkaCluster, admin_client, set_topic_configs
from tests.services.kafka_versions import VERSIONS, is_28, release_of
from tests.services.waiting import wait_until

_REPLICAS = (1, 2, 3)
_FORMAT = "message.format.version"
_CLAIM_FAILED = "the broker has not written the topic's id (partition.metadata) yet"

pytestmark = [
    pytest.mark.long,
    pytest.mark.parametrize("version", [each for each in VERSIONS if is_28(each)]),
]


@pytest.mark.parametrize("is_restarted", [True, False], ids=["restarts", "zookeeper-shell"])
def test_topic_id_when_the_controller_moves_then_written_by_every_broker(
    version: str, tmp_path: Path, topic_name: str, is_restarted: bool
) -> None:
    """The two remedies in docs/operations.md."""
    with KafkaCluster(tmp_path, brokers=3, release=release_of(version)) as cluster:
        cluster.create_topic(topic_name, replicas=_REPLICAS)
        directories = [each.log_dirs[0] / f"{topic_name}-0" for each in cluster.brokers]
        wait_until(lambda: all(each.is_dir() for each in directories), 60.0, "replicas are there")
        missing = without_topic_id(directories)

        if is_restarted:
            cluster.restart(_controller(cluster))
            cluster.restart(_controller(cluster))
        elif cluster.zookeeper is not None:
            cluster.zookeeper.move_controller()

        wait_for_topic_ids(directories)
    assert missing == directories


def test_topic_when_enabled_before_its_id_is_written_then_tiered_once_it_is(
    version: str, tmp_path: Path, topic_name: str
) -> None:
    with KafkaCluster(tmp_path / "kafka", release=release_of(version)) as cluster:
        host = BrokerHost(tmp_path / "host", cluster, metadata_topic=f"{topic_name}-metadata")
        log = TieredLog.create(cluster, topic_name, host.store)
        log.produce(2)
        with host.running(), host.metadata() as metadata:
            host.wait_ready()
            host.rlm("topic", "enable", topic_name, "--local-retention-ms", "0")
            wait_until(lambda: _CLAIM_FAILED in host.log_path.read_text(), 60.0, _CLAIM_FAILED)

            write_topic_ids(cluster, [log.directory])

            log.wait_tiered(metadata)
            host.rlm("status", topic_name, "--check")


def test_enable_when_topics_have_no_ids_then_refused_and_nothing_is_changed(
    version: str, tmp_path: Path, topic_name: str
) -> None:
    """As in an upgraded cluster whose operators have not raised the brokers' protocol."""
    name = "inter.broker.protocol.version"
    release = release_of(version)
    with KafkaCluster(tmp_path / "kafka", properties={name: "2.7"}, release=release) as cluster:
        cluster.create_topic(topic_name, config=WEEK)
        host = BrokerHost(tmp_path / "host", cluster, metadata_topic=f"{topic_name}-metadata")
        with host.running():
            host.wait_ready()

            refused = host.try_rlm("topic", "enable", topic_name)

            kept = retention_of(cluster, topic_name)
    assert refused.returncode != 0
    assert name in refused.stderr
    assert kept == WEEK


def test_message_format_when_older_than_leader_epochs_then_named_until_it_is_raised(
    version: str, tmp_path: Path, topic_name: str
) -> None:
    """First the metadata topic's format, which the manager cannot use; then a user topic's."""
    properties = {"log.message.format.version": "0.10.2"}
    release = release_of(version)
    with KafkaCluster(tmp_path / "kafka", properties=properties, release=release) as cluster:
        cluster.create_topic(topic_name, config=WEEK)
        host = BrokerHost(tmp_path / "host", cluster, metadata_topic=f"{topic_name}-metadata")
        admin = admin_client(cluster.bootstrap_servers)
        with host.running():
            wait_until(
                lambda: any(_FORMAT in reason for reason in host.readiness()[1]),
                60.0,
                lambda: f"the setting is named: {host.readiness()}",
            )
            set_topic_configs(admin, host.config.metadata.topic_name, {_FORMAT: "0.11.0"})
            host.wait_ready()
            refused = host.try_rlm("topic", "enable", topic_name)
            kept = retention_of(cluster, topic_name)
            set_topic_configs(admin, topic_name, {_FORMAT: "0.11.0"})

            host.rlm("topic", "enable", topic_name)
    assert refused.returncode != 0
    assert _FORMAT in refused.stderr
    assert kept == WEEK


def _controller(cluster: KafkaCluster) -> KafkaBroker:
    """Return the broker that is the controller, once all brokers agree."""

    def agreed() -> int:
        answers = {
            admin_client(each.address).list_topics(timeout=10.0).controller_id
            for each in cluster.brokers
        }
        return max(answers) if len(answers) == 1 else 0

    node_id = wait_until(agreed, 60.0, "all brokers name one controller")
    (found,) = [each for each in cluster.brokers if each.node_id == node_id]
    return found
