"""A consumer as anybody writes one."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Consumer, TopicPartition


def read_all(bootstrap: str, topic: str) -> list[int]:
    """Offsets of a plain consumer from the earliest one on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
        }
    )
    with closing(consumer):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30.0)
        consumer.assign([TopicPartition(topic, 0, low)])
        offsets: list[int] = []
        while not offsets or offsets[-1] + 1 < high:
            for message in consumer.consume(500, timeout=0.5):
                assert message.error() is None, message.error()
                offsets.append(message.offset())  # type: ignore[arg-type]  # it has no error
    return offsets
