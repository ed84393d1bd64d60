"""A plain consumer, as users write it."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.services.waiting import wait_until

_READ_WITHIN_S = 120.0


def read_all(bootstrap: str, topic: str) -> list[int]:
    """Return the offsets that a plain consumer reads from the earliest one on."""
    return [offset for offset, _ in read_records(bootstrap, topic)]


def read_records(bootstrap: str, topic: str) -> list[tuple[int, bytes]]:
    """Return the same offsets with their values: committed records in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found: list[tuple[int, bytes]] = []
    with closing(consumer):
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30.0)
        consumer.assign([TopicPartition(topic, 0, low)])

        def is_at_end() -> bool:
            for message in consumer.consume(500, timeout=0.5):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return True
                assert error is None, error
                found.append((message.offset(), message.value()))  # type: ignore[arg-type]  # no error
            return False

        wait_until(is_at_end, _READ_WITHIN_S, lambda: f"read {len(found)} records")
    return found
