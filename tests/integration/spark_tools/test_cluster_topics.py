"""The topics that the jobs make, on a cluster of three brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # no __all__

from spark_tools.cluster_topics import MissingTopicError, ensure_dead_letter_topic, find_partitions
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until


@pytest.mark.parametrize(("replication_factor", "in_sync"), [(1, "1"), (3, "2")])
def test_topic_when_made_then_replicated_as_the_other_and_nothing_expires(
    kafka_of_three: KafkaCluster, topic_name: str, replication_factor: int, in_sync: str
) -> None:
    client = {"bootstrap.servers": kafka_of_three.bootstrap_servers}
    metadata_topic, dead_letters = f"{topic_name}-md", f"{topic_name}-letters"
    kafka_of_three.create_topic(metadata_topic, replication_factor=replication_factor)

    for _ in range(2):
        ensure_dead_letter_topic(
            client,
            dead_letters,
            partition_count=4,
            replicated_as=metadata_topic,
            timeout_ms=30_000,
        )

    wait_until(lambda: known_to_all(kafka_of_three, dead_letters), deadline_s=30.0)
    admin = admin_client(kafka_of_three.bootstrap_servers)
    described = admin.describe_topics(TopicCollection([dead_letters]))[dead_letters].result(30.0)
    replicas = [len(partition.replicas) for partition in described.partitions]
    assert replicas == [replication_factor] * 4
    resource = ConfigResource("topic", dead_letters)
    configs = admin.describe_configs([resource])[resource].result(30.0)
    names = ("cleanup.policy", "min.insync.replicas", "retention.bytes", "retention.ms")
    assert [configs[name].value for name in names] == ["delete", in_sync, "-1", "-1"]


def known_to_all(cluster: KafkaCluster, topic: str) -> bool:
    answers = (admin_client(each.address).list_topics(timeout=10.0) for each in cluster.brokers)
    return all(topic in answer.topics for answer in answers)


def test_find_when_there_is_no_such_topic_then_it_is_reported_as_missing(
    kafka_of_three: KafkaCluster, topic_name: str
) -> None:
    client = {"bootstrap.servers": kafka_of_three.bootstrap_servers}

    with pytest.raises(MissingTopicError, match=topic_name):
        find_partitions(client, [topic_name], timeout_ms=30_000)
