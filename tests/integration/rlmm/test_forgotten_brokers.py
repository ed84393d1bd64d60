"""Clients that no longer know any broker, like librdkafka's after a response without brokers.

The first client of each test has an address where nobody listens, so it finds no broker, either.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from rlmm.positions import ReadPosition, TopicRecord
from rlmm.topic.event_topic import UnknownResultError
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.kafka_admin import KafkaTopicAdmin
from rlmm.topic.kafka_reader import KafkaTopicReader
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import RetriableError
from tests.integration.rlmm.ensured_topic import ensured
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports

_TIMEOUTS = KafkaTimeouts(delivery_ms=1_000, produce_ms=500)


@pytest.fixture
def topic(kafka: KafkaCluster, topic_settings: TopicSettings) -> Iterator[KafkaTopic]:
    """The existing topic, with a client that works."""
    topic = KafkaTopic({"bootstrap.servers": kafka.bootstrap_servers}, topic_settings)
    ensured(topic)
    yield topic
    topic.close()


@pytest.fixture
def client() -> dict[str, str]:
    """The configuration of a client that finds no broker; a test corrects it for later clients."""
    (port,) = free_ports(1)
    return {"bootstrap.servers": f"127.0.0.1:{port}"}


def test_ends_when_the_client_finds_no_broker_then_another_client_asks(
    kafka: KafkaCluster, topic: KafkaTopic, topic_settings: TopicSettings, client: dict[str, str]
) -> None:
    written = topic.publish(0, b"key", b"value")
    admin = KafkaTopicAdmin(client, topic_settings, request_timeout_ms=1_000, replaced_after_s=0)
    client["bootstrap.servers"] = kafka.bootstrap_servers
    with pytest.raises(RetriableError):
        admin.end_offsets([0])

    ends = admin.end_offsets([0])

    assert ends == {0: written.offset + 1}


@pytest.mark.usefixtures("topic")
def test_ends_when_the_client_is_new_then_is_not_replaced(
    kafka: KafkaCluster, topic_settings: TopicSettings, client: dict[str, str]
) -> None:
    """An outage makes no more than two clients a minute."""
    admin = KafkaTopicAdmin(client, topic_settings, request_timeout_ms=1_000)
    client["bootstrap.servers"] = kafka.bootstrap_servers

    for _ in range(2):
        with pytest.raises(RetriableError):
            admin.end_offsets([0])


def test_reader_when_it_finds_no_broker_then_another_one_reads_from_the_same_positions(
    kafka: KafkaCluster, topic: KafkaTopic, topic_settings: TopicSettings, client: dict[str, str]
) -> None:
    written = topic.publish(0, b"key", b"value")
    reader = KafkaTopicReader(client, topic_settings.name, replaced_after_s=0)
    client["bootstrap.servers"] = kafka.bootstrap_servers
    positions = {0: ReadPosition(offset=written.offset)}
    reader.assign(positions)
    with pytest.raises(RetriableError):
        _read(reader)

    reader.assign(positions)
    found = _read(reader)

    assert [(record.offset, record.value) for record in found] == [(written.offset, b"value")]
    reader.close()


def test_publish_when_the_producer_finds_no_broker_then_another_one_writes(
    kafka: KafkaCluster, topic: KafkaTopic, topic_settings: TopicSettings, client: dict[str, str]
) -> None:
    publisher = KafkaTopic(client, topic_settings, _TIMEOUTS)
    client["bootstrap.servers"] = kafka.bootstrap_servers
    with pytest.raises(UnknownResultError):
        publisher.publish(0, b"key", b"first")

    second = publisher.publish(0, b"key", b"second")

    assert topic.end_offsets([0]) == {0: second.offset + 1}
    publisher.close()


def _read(reader: KafkaTopicReader) -> Sequence[TopicRecord]:
    found: Sequence[TopicRecord] = ()
    deadline_s = time.monotonic() + 30
    while not found and time.monotonic() < deadline_s:
        found = reader.poll(max_records=10, timeout_ms=200)
    return found
