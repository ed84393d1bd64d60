"""A producer and a reader that work on a host during faults: see `VirtualHost.call`.

Both have all gateways as bootstrap servers, as an application would, and retry until their time is
over. The producer is idempotent; the reader reads partitions from their first offset.
"""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import asdict
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.clients.record_digests import RecordDigests
from tests.hosts.kafka_client import VALUE_BYTES

_GIVE_UP_S = 240.0
_POLL_S = 0.2


def write(
    bootstrap: str, topic: str, partitions: int, count: int, seconds: float
) -> dict[str, Any]:
    """Write `count` records to each empty partition, over `seconds`; return their digests."""
    written, errors = dict[tuple[int, int], tuple[int, bytes | None]](), list[str]()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "delivery.timeout.ms": round(_GIVE_UP_S * 1000),
            "request.timeout.ms": 5_000,
            "linger.ms": 5,
        }
    )

    def delivered(
        number: int, timestamp_ms: int, error: KafkaError | None, message: Message
    ) -> None:
        partition, offset = message.partition(), message.offset()
        # For a duplicate of a batch that a broker no longer remembers, it returns no offset.
        if error is not None or partition is None or offset not in (None, number):
            errors.append(f"{partition}: {error}, record {number} at offset {offset}")
            return
        # If a batch was sent twice, the message's own timestamp is the broker's.
        written[partition, number] = timestamp_ms, message.value()

    started_s = time.monotonic()
    for number in range(count):
        for partition in range(partitions):
            content = random.SystemRandom().randbytes(VALUE_BYTES)
            timestamp_ms = round(time.time() * 1000)
            producer.produce(
                topic,
                partition=partition,
                value=content,
                timestamp=timestamp_ms,
                on_delivery=partial(delivered, number, timestamp_ms),
            )
        due_s = started_s + (number + 1) * seconds / count
        while (early_s := due_s - time.monotonic()) > 0:
            producer.poll(early_s)
    unsent = producer.flush(_GIVE_UP_S)
    assert not unsent, f"{unsent} records were not delivered"
    assert not errors, errors[:3]
    digests = RecordDigests()
    # A batch that was sent again can be acknowledged after a later one.
    for (partition, number), (timestamp_ms, value) in sorted(written.items()):
        digests.add(
            partition=partition,
            offset=number,
            timestamp_ms=timestamp_ms,
            key=None,
            value=value,
            headers=[],
        )
    return {str(number): asdict(found) for number, found in digests.reads().items()}


def read(bootstrap: str, topic: str, partitions: int, count: int) -> dict[str, Any]:
    """Read `count` records of each partition; return their digests."""
    digests, positions = RecordDigests(), dict.fromkeys(range(partitions), 0)
    give_up_s = time.monotonic() + _GIVE_UP_S
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 2,
        }
    )
    with closing(consumer):
        consumer.assign([TopicPartition(topic, number, 0) for number in positions])
        while any(position < count for position in positions.values()):
            assert time.monotonic() < give_up_s, f"positions {positions}, wanted {count}"
            message = consumer.poll(_POLL_S)
            if message is not None:
                _take(message, digests, positions)
    return {str(number): asdict(found) for number, found in digests.reads().items()}


def _take(message: Message, digests: RecordDigests, positions: dict[int, int]) -> None:
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is not None:
        if error.code() < 0 or error.retriable():
            return
        raise KafkaException(error)
    assert partition is not None
    assert offset == positions[partition], f"partition {partition}: {offset} after {positions}"
    digests.add(
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=[],
    )
    positions[partition] = offset + 1
