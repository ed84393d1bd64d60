"""Writes to the dead-letter topic in Kafka, with acks=all.

At the first dead letter, creates the topic if it does not exist; its records never expire. All dead
letters of a segment have the same key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rlm.broker.dead_letters.dead_letter_topic import DeadLetterTopic
from rlmm.dead_letters.dead_letter import DeadLetter, encode, topic_configs
from rsm.segment.errors import RetriableError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """Represents the topic's name and shape, and the time limit of its creation and of a write."""

    name: str
    replication_factor: int
    partition_count: int = 10
    timeout_ms: int = 30_000


class KafkaDeadLetterTopic(DeadLetterTopic):
    """Represents the topic in Kafka; connects at the first dead letter."""

    def __init__(self, client: Mapping[str, str], settings: DeadLetterSettings) -> None:
        """`client` is librdkafka's configuration."""
        self._client = dict(client)
        self._settings = settings
        self._producer: Producer | None = None
        self._lock = Lock()

    def publish(self, dead_letter: DeadLetter) -> None:
        record = encode(dead_letter)
        outcome: list[KafkaError | None] = []

        def done(error: KafkaError | None, _message: Message) -> None:
            outcome.append(error)

        with self._lock:
            producer = self._ready_producer()
            try:
                producer.produce(
                    self._settings.name, key=record.key, value=record.value, on_delivery=done
                )
            except (BufferError, KafkaException) as error:
                # For example, the record is too large.
                raise RetriableError(
                    "cannot write a dead letter", topic=self._settings.name, error=error
                ) from error
            give_up_s = time.monotonic() + self._settings.timeout_ms / 1000
            while not outcome and time.monotonic() < give_up_s:
                producer.poll(_POLL_S)
            if outcome != [None]:
                # The producer may have forgotten all brokers: see rlmm.topic.kafka_errors.
                self._producer = None
        if not outcome:
            raise RetriableError(
                "cannot write a dead letter: the broker did not acknowledge it in time",
                topic=self._settings.name,
            )
        if outcome[0] is not None:
            raise RetriableError(
                "cannot write a dead letter", topic=self._settings.name, error=outcome[0].name()
            )

    def close(self) -> None:
        with self._lock:
            if self._producer is not None:
                self._producer.flush(_POLL_S)
                self._producer = None

    def _ready_producer(self) -> Producer:
        if self._producer is None:
            self._ensure_topic()
            self._producer = Producer(
                {
                    **self._client,
                    "acks": "all",
                    "delivery.timeout.ms": self._settings.timeout_ms,
                    "enable.idempotence": True,
                },
                logger=logging.getLogger("librdkafka.dead_letters"),
            )
        return self._producer

    def _ensure_topic(self) -> None:
        settings = self._settings
        admin = AdminClient({**self._client}, logger=logging.getLogger("librdkafka.admin"))
        topic = NewTopic(
            settings.name,
            settings.partition_count,
            settings.replication_factor,
            config=dict(topic_configs(settings.replication_factor)),
        )
        created = admin.create_topics([topic], request_timeout=settings.timeout_ms / 1000)
        try:
            created[settings.name].result(settings.timeout_ms / 1000)
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise RetriableError(
                    "cannot create the dead-letter topic",
                    topic=settings.name,
                    error=error.name(),
                ) from exception
        except TimeoutError as error:
            raise RetriableError(
                "cannot create the dead-letter topic: the cluster did not answer in time",
                topic=settings.name,
            ) from error
        else:
            _log.info(LogLine("created the dead-letter topic", topic=settings.name))
