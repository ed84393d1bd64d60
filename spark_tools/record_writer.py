"""Writes records to topics, for jobs that publish deletions or dead letters."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from rsm.segment.errors import RetriableError
from spark_tools.connection import refused_client

_BY_KEY = -1
"""librdkafka's RD_KAFKA_PARTITION_UA: the key selects the partition."""
_FULL_QUEUE_PAUSE_S = 0.05
_RUN_AGAIN = "Run the job again"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    """Represents a record to write; its key selects the partition unless `partition` is given."""

    topic: str
    key: bytes | None
    value: bytes
    partition: int = _BY_KEY
    headers: tuple[tuple[str, bytes], ...] = ()


def require_producer(client: Mapping[str, str]) -> None:
    """Raise InvalidConfigError if librdkafka rejects the configuration. Waits for no broker."""
    _producer(client)


def write_records(
    client: Mapping[str, str], records: Iterable[OutgoingRecord], *, timeout_ms: int
) -> None:
    """Write all records; return when all in-sync replicas have them.

    `client` is librdkafka's configuration. Sends records while `records` yields more. Raises
    RetriableError on a timeout or a rejected record; some records may then have been written.
    Raises InvalidConfigError as `require_producer` does.
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
                    "cannot write a record",
                    topic=each.topic,
                    reason=exception.args[0].str(),
                    advice=_RUN_AGAIN,
                ) from exception
            else:
                break
    left = producer.flush(timeout_ms / 1000)
    if left or failures:
        reason = failures[0].str() if failures else "the cluster did not answer in time"
        raise RetriableError(
            "cannot write all records", unconfirmed=left, reason=reason, advice=_RUN_AGAIN
        )


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
        raise refused_client(client, exception.args[0].str()) from exception
