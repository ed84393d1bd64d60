"""Metadata topics on the session's broker: few partitions, each with one replica."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlmm.topic.kafka import KafkaTopic
from rlmm.topic.shape import TopicSettings
from tests.contract.event_topic_contract import PARTITION_COUNT, OpenTopic
from tests.integration.rlmm.ensured_topic import ensured
from tests.services.kafka import KafkaCluster


@pytest.fixture
def topic_settings(topic_name: str) -> TopicSettings:
    return TopicSettings(name=topic_name, partition_count=PARTITION_COUNT, replication_factor=1)


@pytest.fixture
def open_topic(kafka: KafkaCluster, topic_settings: TopicSettings) -> Iterator[OpenTopic]:
    """A function that opens a client of one topic; the first client creates the topic."""
    opened: list[KafkaTopic] = []

    def open_topic() -> KafkaTopic:
        topic = KafkaTopic({"bootstrap.servers": kafka.bootstrap_servers}, topic_settings)
        if not opened:
            ensured(topic)
        opened.append(topic)
        return topic

    yield open_topic
    for topic in opened:
        topic.close()


@pytest.fixture
def missing_topic(kafka: KafkaCluster, topic_settings: TopicSettings) -> Iterator[KafkaTopic]:
    """A client of a topic that does not exist."""
    topic = KafkaTopic({"bootstrap.servers": kafka.bootstrap_servers}, topic_settings)
    yield topic
    topic.close()
