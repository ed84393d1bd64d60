"""Clients of the metadata topic that must be replaced while no new client can be created.

The first client of each test has an address where nobody listens, so it finds no broker.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlmm.codec import encode
from rlmm.known_writes import KnownWrites
from rlmm.topic.event_topic import UnknownResultError
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.kafka_admin import KafkaTopicAdmin
from rlmm.topic.kafka_reader import KafkaTopicReader
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import RetriableError
from tests.metadata_builder import trim
from tests.services.ports import free_ports

PROTOCOL = "security.protocol"
SETTINGS = TopicSettings(name="metadata", partition_count=1, replication_factor=1)
TIMEOUTS = KafkaTimeouts(delivery_ms=300, produce_ms=200)


@pytest.fixture
def client() -> dict[str, str]:
    """The configuration of all clients; a test makes it unusable and usable again."""
    (port,) = free_ports(1)
    return {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": "0"}


@pytest.fixture
def topic(client: dict[str, str]) -> Iterator[KafkaTopic]:
    topic = KafkaTopic(client, SETTINGS, TIMEOUTS)
    yield topic
    topic.close()


def test_reader_when_no_consumer_can_be_created_then_keeps_the_old_one(
    client: dict[str, str],
) -> None:
    reader = KafkaTopicReader(client, SETTINGS.name, replaced_after_s=0)
    client[PROTOCOL] = "unknown"
    with pytest.raises(RetriableError, match="cannot replace a Kafka client"):
        reader.poll(max_records=1, timeout_ms=10)
    del client[PROTOCOL]

    with pytest.raises(RetriableError, match="cannot read the topic"):
        reader.poll(max_records=1, timeout_ms=10)

    reader.close()


def test_write_when_no_producer_can_be_created_then_its_result_is_still_unknown(
    client: dict[str, str], topic: KafkaTopic
) -> None:
    """Otherwise the next write would not first find out whether this one arrived."""
    writes = KnownWrites(topic, lambda _written: True)
    key = encode(trim(10)).key
    client[PROTOCOL] = "unknown"

    for _ in range(2):
        with pytest.raises(UnknownResultError):
            writes.publish(0, key, b"")


def test_ends_when_no_admin_client_can_be_created_then_the_error_is_retriable(
    client: dict[str, str],
) -> None:
    admin = KafkaTopicAdmin(client, SETTINGS, request_timeout_ms=200, replaced_after_s=0)
    client[PROTOCOL] = "unknown"

    with pytest.raises(RetriableError):
        admin.end_offsets([0])
