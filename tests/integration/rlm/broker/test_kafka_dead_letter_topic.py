"""Dead letters in a real topic."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from rlm.broker.dead_letters.kafka_dead_letter_topic import DeadLetterSettings, KafkaDeadLetterTopic
from rlmm.dead_letters.dead_letter import DeadLetter, decode
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from tests.metadata_builder import segment_metadata
from tests.services.kafka import KafkaCluster

_DEAD_LETTER = DeadLetter(
    metadata=segment_metadata(state=SegmentState.DELETE_SEGMENT_STARTED),
    reason="refused",
    attempts=5,
    first_attempt_ms=1,
    last_attempt_ms=2,
)


def _topic(cluster: KafkaCluster, name: str, **client: str) -> KafkaDeadLetterTopic:
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    settings = DeadLetterSettings(name=name, replication_factor=1, partition_count=1)
    return KafkaDeadLetterTopic({**servers, **client}, settings)


def test_dead_letter_when_published_then_is_in_the_created_topic(
    kafka: KafkaCluster, topic_name: str
) -> None:
    name = f"{topic_name}-dead-letters"
    with closing(_topic(kafka, name)) as topic:
        topic.publish(_DEAD_LETTER)

    assert decode(_first_value(kafka, name)) == _DEAD_LETTER


def test_dead_letter_when_the_client_refuses_it_then_can_be_retried(
    kafka: KafkaCluster, topic_name: str
) -> None:
    """A record above the client's limit fails before it is sent."""
    large = DeadLetter(
        metadata=_DEAD_LETTER.metadata,
        reason="refused " * 1_000,
        attempts=5,
        first_attempt_ms=1,
        last_attempt_ms=2,
    )
    name = f"{topic_name}-dead-letters"
    with closing(_topic(kafka, name, **{"message.max.bytes": "1000"})) as topic:
        with pytest.raises(RetriableError, match="cannot write a dead letter"):
            topic.publish(large)
        topic.publish(_DEAD_LETTER)

    assert decode(_first_value(kafka, name)) == _DEAD_LETTER


def _first_value(cluster: KafkaCluster, topic: str) -> bytes:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        (message,) = consumer.consume(1, timeout=20.0)
    value = message.value()
    assert isinstance(value, bytes)
    return value
