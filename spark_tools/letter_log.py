"""Writes letters to the letter topic, for jobs that tell others what is to be deleted."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, Message, Producer

from rlmm.codec import EncodedRecord
from rsm.segment.errors import RetriableError


def write_letters(
    client: Mapping[str, str], topic: str, letters: Iterable[EncodedRecord], *, timeout_ms: int
) -> None:
    """Returns when all in-sync replicas have all of them. `client` is librdkafka's configuration.

    RetriableError if that is not known in time: some may have been written, which does no harm.
    """
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {**client, "acks": "all", "enable.idempotence": True},
        logger=logging.getLogger("librdkafka.producer"),
    )
    for each in letters:
        while True:
            try:
                producer.produce(topic, key=each.key, value=each.value, on_delivery=delivered)
            except BufferError:
                producer.poll(1.0)  # librdkafka's queue is full
            else:
                break
    left = producer.flush(timeout_ms / 1000)
    if left or failures:
        reason = failures[0].str() if failures else "no answer in time"
        raise RetriableError("letters could not be written", topic=topic, reason=reason)
