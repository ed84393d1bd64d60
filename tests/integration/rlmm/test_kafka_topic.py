from __future__ import annotations

import dataclasses

import pytest
from confluent_kafka.cimpl import NewTopic

from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import InvalidConfigError, RetriableError
from tests.contract.event_topic_contract import EventTopicContract
from tests.integration.rlmm.ensured_topic import ensured
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.ports import free_ports
from tests.services.waiting import wait_until


class TestKafkaTopic(EventTopicContract):
    """The contract of event topics, with a real broker."""


def ensure(kafka: KafkaCluster, settings: TopicSettings) -> None:
    topic = KafkaTopic({"bootstrap.servers": kafka.bootstrap_servers}, settings)
    try:
        ensured(topic)
    finally:
        topic.close()


def test_topic_when_partitions_differ_then_the_setting_is_named(
    kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """Scenario 40."""
    ensure(kafka, topic_settings)

    with pytest.raises(InvalidConfigError, match=r"topic\.num\.partitions.*expected=3.*found=2"):
        ensure(kafka, dataclasses.replace(topic_settings, partition_count=3))


def test_topic_when_brokers_are_too_few_then_the_setting_is_named(
    kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """Scenario 40: nothing is created."""
    with pytest.raises(InvalidConfigError, match=r"topic\.replication\.factor"):
        ensure(kafka, dataclasses.replace(topic_settings, replication_factor=3))

    assert topic_settings.name not in admin_client(kafka.bootstrap_servers).list_topics().topics


def test_topic_when_replicated_less_than_asked_then_the_setting_is_named(
    kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """Scenario 40: an existing topic has a lower replication factor."""
    ensure(kafka, topic_settings)

    with pytest.raises(InvalidConfigError, match=r"topic\.replication\.factor.*expected=2"):
        ensure(kafka, dataclasses.replace(topic_settings, replication_factor=2))


def test_topic_when_not_compacted_then_the_config_is_named(
    kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """Scenario 40, R12."""
    name = topic_settings.name
    admin = admin_client(kafka.bootstrap_servers)
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30.0)

    with pytest.raises(InvalidConfigError, match=r"cleanup\.policy.*found=delete"):
        ensure(kafka, topic_settings)


def test_ends_when_brokers_that_lead_are_killed_then_are_asked_of_those_that_lead_next(
    kafka_of_three: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """R15: without a broker's response, there is no end."""
    settings = dataclasses.replace(topic_settings, replication_factor=3)
    topic = KafkaTopic({"bootstrap.servers": kafka_of_three.bootstrap_servers}, settings)
    ensured(topic)
    partitions = range(settings.partition_count)
    expected = {each: topic.publish(each, b"key", b"value").offset + 1 for each in partitions}
    metadata = admin_client(kafka_of_three.bootstrap_servers).list_topics(settings.name)
    leader = metadata.topics[settings.name].partitions[0].leader

    try:
        with kafka_of_three.without(kafka_of_three.brokers[leader - 1], killed=True):
            ends = wait_until(lambda: topic.end_offsets(partitions), 60.0, despite=RetriableError)
            assert ends == expected
    finally:
        topic.close()


def test_ends_when_the_broker_does_not_know_the_topic_then_is_retriable(
    kafka: KafkaCluster, topic_settings: TopicSettings
) -> None:
    """A broker answers like this for a moment after another broker has created the topic."""
    client = {"bootstrap.servers": kafka.bootstrap_servers}
    topic = KafkaTopic(client, topic_settings, KafkaTimeouts(request_ms=1000))

    with pytest.raises(RetriableError):
        topic.end_offsets([0])
    topic.close()


def test_topic_when_nobody_listens_then_is_retriable() -> None:
    """Scenario 33."""
    (port,) = free_ports(1)
    timeouts = KafkaTimeouts(request_ms=500, delivery_ms=500)
    topic = KafkaTopic({"bootstrap.servers": f"127.0.0.1:{port}"}, TopicSettings(), timeouts)

    with pytest.raises(RetriableError):
        topic.ensure(create=True)

    with pytest.raises(RetriableError):
        topic.publish(0, b"key", b"value")
    topic.close()
