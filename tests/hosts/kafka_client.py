"""Requests of tests to Kafka, sent on a host: see `VirtualHost.call`.

Arguments and results are JSON. Partitions are keys of dicts, so they come back as text.
"""

from __future__ import annotations

import random
import time
from dataclasses import asdict
from typing import Any

from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without __all__
    OffsetSpec,
)
from confluent_kafka.cimpl import NewTopic

from tests.clients import librdkafka_reader
from tests.clients.reader_contract import ReadRequest
from tests.clients.record_digests import RecordDigests
from tests.services.kafka import admin_client
from tests.services.waiting import wait_until

SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 8_000
RECORDS_PER_SEGMENT = SEGMENT_BYTES // VALUE_BYTES
_HOUR_MS = 3_600_000


def wait_brokers(bootstrap: str, count: int, deadline_s: float) -> None:
    """Wait until each address of `bootstrap` lists that many brokers."""
    addresses = bootstrap.split(",")

    def list_all() -> bool:
        views = (admin_client(each).list_topics(timeout=2.0) for each in addresses)
        return all(len(view.brokers) == count for view in views)

    what = f"each of {addresses} lists {count} brokers"
    wait_until(list_all, deadline_s, what, despite=KafkaException)


def create_topic(bootstrap: str, topic: str, replicas: list[list[int]]) -> None:
    """Create a topic of small segments; a partition's first replica leads."""
    new = NewTopic(
        topic,
        len(replicas),
        replica_assignment=replicas,
        config={"segment.bytes": str(SEGMENT_BYTES)},
    )
    admin = admin_client(bootstrap)
    admin.create_topics([new])[topic].result(30.0)

    def has_leaders() -> bool:
        return [leader for _, leader in sorted(leaders(bootstrap, topic).items())] == [
            each[0] for each in replicas
        ]

    wait_until(has_leaders, 60.0, f"the first replicas of {topic} lead", despite=KafkaException)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic."""
    admin = admin_client(bootstrap)  # garbage collection of a client would end its requests
    admin.delete_topics([topic])[topic].result(30.0)


def delete_records(bootstrap: str, topic: str) -> None:
    """Delete all present records of a topic."""
    admin = admin_client(bootstrap)
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # ships untyped
    numbers = admin.list_topics(topic, timeout=10.0).topics[topic].partitions
    futures = admin.list_offsets({TopicPartition(topic, number): latest for number in numbers})
    ends = [
        TopicPartition(tp.topic, tp.partition, future.result(30.0).offset)
        for tp, future in futures.items()
    ]
    for future in admin.delete_records(ends).values():
        future.result(30.0)


def topics(bootstrap: str) -> list[str]:
    """Return the names of all topics."""
    return sorted(admin_client(bootstrap).list_topics(timeout=10.0).topics)


def elect_first_replicas(bootstrap: str, topic: str, deadline_s: float) -> None:
    """Make the first replica of each partition the leader, once it is in sync."""
    admin = admin_client(bootstrap)

    def lead() -> bool:
        admin.elect_leaders(ElectionType.PREFERRED).result(30.0)
        found = admin.list_topics(topic, timeout=10.0).topics[topic].partitions.values()
        return all(each.leader == each.replicas[0] for each in found)

    what = f"the first replicas of {topic} lead"
    wait_until(lead, deadline_s, what, interval_s=0.5, despite=KafkaException)


def wait_led_by_others(bootstrap: str, topic: str, node_id: int, deadline_s: float) -> None:
    """Wait until a broker leads no partition of a topic."""

    def led_by_others() -> bool:
        return not set(leaders(bootstrap, topic).values()) & {node_id, -1}

    what = f"others than broker {node_id} lead {topic}"
    wait_until(led_by_others, deadline_s, what, interval_s=0.5, despite=KafkaException)


def leaders(bootstrap: str, topic: str) -> dict[str, int]:
    """Return the leaders' node ids by partition."""
    found = admin_client(bootstrap).list_topics(topic, timeout=10.0).topics[topic].partitions
    return {str(number): partition.leader for number, partition in found.items()}


def broker_addresses(bootstrap: str) -> dict[str, str]:
    """Return the brokers' addresses by node id, as this bootstrap server returns them."""
    brokers = admin_client(bootstrap).list_topics(timeout=10.0).brokers
    return {str(node_id): f"{each.host}:{each.port}" for node_id, each in brokers.items()}


def produce(bootstrap: str, topic: str, partitions: int, segments: int) -> dict[str, Any]:
    """Produce this number of segments to each partition; return the digests of the records.

    The records are an hour old, older than `remote.local.trim.min.age.ms`.
    """
    digests = RecordDigests()
    errors: list[str] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
    )
    first_ms = int(time.time() * 1000) - _HOUR_MS

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(str(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        digests.add(
            partition=partition,
            offset=offset,
            timestamp_ms=message.timestamp()[1],
            key=message.key(),
            value=message.value(),
            headers=[],
        )

    for number in range(segments * (RECORDS_PER_SEGMENT + 1)):
        for partition in range(partitions):
            producer.produce(
                topic,
                partition=partition,
                value=random.SystemRandom().randbytes(VALUE_BYTES),
                timestamp=first_ms + number,
                on_delivery=delivered,
            )
        producer.poll(0)
    unsent = producer.flush(60.0)
    assert not unsent, f"{unsent} records were not delivered"
    assert not errors, errors[:3]
    return {str(number): asdict(read) for number, read in digests.reads().items()}


def read(bootstrap: str, topic: str) -> dict[str, Any]:
    """Read a topic from its earliest offsets to its ends; return the digests by partition."""
    found = librdkafka_reader.read(ReadRequest(bootstrap=bootstrap, topic=topic))
    return {str(number): asdict(read) for number, read in found.reads().items()}


def local_starts(bootstrap: str, topic: str) -> dict[str, int]:
    """Return the local start offsets that the brokers report."""
    admin = admin_client(bootstrap)
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # ships untyped
    numbers = admin.list_topics(topic, timeout=10.0).topics[topic].partitions
    futures = admin.list_offsets({TopicPartition(topic, number): earliest for number in numbers})
    return {str(tp.partition): future.result(30.0).offset for tp, future in futures.items()}


def wait_local_starts(
    bootstrap: str, topic: str, wanted: dict[str, int], deadline_s: float
) -> None:
    """Wait until the brokers' logs start at these offsets or above."""
    found: dict[str, int] = {}

    def are_trimmed() -> bool:
        found.update(local_starts(bootstrap, topic))
        return all(found[number] >= offset for number, offset in wanted.items())

    wait_until(
        are_trimmed,
        deadline_s,
        lambda: f"local starts of {topic}: {found}, wanted {wanted}",
        interval_s=0.5,
        despite=KafkaException,
    )
