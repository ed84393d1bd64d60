"""Writes records to topics, for jobs that tell others what was deleted or is to be."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from rsm.segment.errors import InvalidConfigError, RetriableError

_BY_KEY = -1
"""librdkafka's word for a partition that the key decides on."""
_FULL_QUEUE_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    """A record; the partition is chosen by the key unless it is given."""

    topic: str
    key: bytes | None
    value: bytes
    partition: int = _BY_KEY
    headers: tuple[tuple[str, bytes], ...] = ()


def require_producer(client: Mapping[str, str]) -> None:
    """InvalidConfigError if librdkafka makes no producer of this; no broker is asked."""
    _producer(client)


def write_records(
    client: Mapping[str, str], records: Iterable[OutgoingRecord], *, timeout_ms: int
) -> None:
    """Returns when all in-sync replicas have all of them. `client` is librdkafka's configuration.

    Records are sent while others are still being made. RetriableError if it is not known in time
    that all are there, or if one is refused: some may have been written. InvalidConfigError as
    `require_producer`.
    """
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = _producer(client)
    for each in records:
        while True:
            try:
                producer.produce(
                    each.topic,
                    key=each.key,
                    value=each.value,
                    partition=each.partition,
                    headers=list(each.headers),
                    on_delivery=delivered,
                )
            except BufferError:
                producer.poll(_FULL_QUEUE_PAUSE_S)
            except KafkaException as exception:
                raise RetriableError(
                    "a record cannot be written", topic=each.topic, reason=exception.args[0].str()
                ) from exception
            else:
                break
    left = producer.flush(timeout_ms / 1000)
    if left or failures:
        reason = failures[0].str() if failures else "no answer in time"
        raise RetriableError("records could not be written", left=left, reason=reason)


def _producer(client: Mapping[str, str]) -> Producer:
    config = {
        "linger.ms": "20",
        **client,
        "acks": "all",
        "enable.idempotence": True,
        "delivery.report.only.error": True,
    }
    try:
        return Producer(config, logger=logging.getLogger("librdkafka.producer"))
    except KafkaException as exception:
        raise InvalidConfigError(
            "the Kafka producer cannot be made as it is configured",
            reason=exception.args[0].str(),
        ) from exception
