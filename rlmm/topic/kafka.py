"""The metadata topic in Kafka, by confluent-kafka.

Written with acks=all and idempotence, each record once or never. Read by manual assignment, without
a consumer group, and only from where it was told: a position that is gone is an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.event_topic import EventTopic, Published
from rlmm.topic.kafka_admin import KafkaTopicAdmin
from rlmm.topic.kafka_errors import kafka_error, map_error
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import RetriableError, TieredStorageError

logger = logging.getLogger(__name__)

_DELIVERY_POLL_S = 0.005
_DELIVERY_SLACK_S = 5.0
_CLOSE_TIMEOUT_S = 2.0
_LEADERS_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTimeouts:
    """How long the cluster may take: to answer a question, and to store a record."""

    request_ms: int = 10_000
    delivery_ms: int = 30_000


class KafkaTopic(EventTopic):
    """One metadata topic of one cluster. `client` is librdkafka's configuration (client.*).

    Memory: librdkafka's queue of fetched records (queued.max.messages.kbytes per partition) and
    that of records being written (one per call of `publish`).
    """

    def __init__(
        self,
        client: Mapping[str, str],
        settings: TopicSettings,
        timeouts: KafkaTimeouts | None = None,
    ) -> None:
        """No connection is made before the first call."""
        self._name = settings.name
        self._client = dict(client)
        self._timeouts = timeouts or KafkaTimeouts()
        self._admin = KafkaTopicAdmin(
            client, settings, request_timeout_ms=self._timeouts.request_ms
        )
        self._consumer = Consumer(
            _consumer_config(client, settings.name), logger=logging.getLogger("librdkafka.consumer")
        )
        self._producer = self._new_producer()
        self._producer_lock = Lock()
        self._positions: dict[int, int] = {}
        self._read_error: TieredStorageError | None = None
        self._closed = False

    def ensure(self, *, create: bool) -> TopicIdentity:
        identity = self._admin.ensure(create=create)
        # What is assigned is read at once if the leaders are known; librdkafka would look for them
        # only half a second later.
        with suppress(KafkaException):
            self._consumer.list_topics(self._name, timeout=_LEADERS_TIMEOUT_S)
        return identity

    def publish(self, partition: int, key: bytes, value: bytes | None) -> Published:
        delivery = _Delivery()
        with self._producer_lock:
            producer = self._producer
        try:
            producer.produce(
                self._name, value=value, key=key, partition=partition, on_delivery=delivery.done
            )
        except KafkaException as exception:
            raise self._write_error(kafka_error(exception), producer) from exception
        except BufferError as error:
            raise RetriableError("too many records are being written") from error
        give_up_s = time.monotonic() + self._timeouts.delivery_ms / 1000 + _DELIVERY_SLACK_S
        while not delivery.finished:
            if time.monotonic() > give_up_s:
                raise RetriableError("no answer to a written record", partition=partition)
            producer.poll(_DELIVERY_POLL_S)
        if delivery.error is not None:
            raise self._write_error(delivery.error, producer)
        return Published(partition=partition, offset=delivery.offset)

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._read_error = None
        self._positions = {partition: p.offset for partition, p in positions.items()}
        self._consumer.assign(
            [self._topic_partition(partition, p) for partition, p in positions.items()]
        )

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        if self._read_error is not None:
            error, self._read_error = self._read_error, None
            raise error
        # Waits for one only: a wait for many lasts until so many are there.
        messages = self._consumer.consume(1, timeout_ms / 1000)
        if messages and max_records > 1:
            messages += self._consumer.consume(max_records - 1, 0)
        records: list[TopicRecord] = []
        for message in messages:
            self._take(message, records)
        if self._read_error is not None and not records:
            return self.poll(max_records=max_records, timeout_ms=timeout_ms)
        return records

    def positions(self) -> Mapping[int, int]:
        return dict(self._positions)

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return self._admin.end_offsets(partitions)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._consumer.close()
        self._producer.flush(_CLOSE_TIMEOUT_S)

    def _take(self, message: Message, records: list[TopicRecord]) -> None:
        """Take a record, the news that a partition's end is reached, or an error.

        An error is raised by the next poll, for records that came with it must not be lost.
        """
        partition, offset, error = message.partition(), message.offset(), message.error()
        if partition is None or offset is None or (error is not None and partition < 0):
            assert error is not None, "a record has a partition and an offset"
            self._read_error = map_error(error, "the metadata topic can't be read")
            return
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - spelled so
                self._positions[partition] = max(self._positions.get(partition, 0), offset)
            else:
                self._read_error = map_error(
                    error, "the metadata topic can't be read", partition=partition
                )
            return
        self._positions[partition] = offset + 1
        records.append(
            TopicRecord(
                partition=partition,
                offset=offset,
                append_time_ms=message.timestamp()[1],
                key=message.key() or b"",
                value=message.value(),
                leader_epoch=-1 if (epoch := message.leader_epoch()) is None else epoch,
            )
        )

    def _topic_partition(self, partition: int, position: ReadPosition) -> TopicPartition:
        if position.offset == 0:
            return TopicPartition(self._name, partition, OFFSET_BEGINNING)
        if position.leader_epoch < 0:
            return TopicPartition(self._name, partition, position.offset)
        return TopicPartition(
            self._name, partition, position.offset, leader_epoch=position.leader_epoch
        )

    def _write_error(self, error: KafkaError, producer: Producer) -> TieredStorageError:
        if error.fatal():
            # An idempotent producer that lost its order is of no use any more.
            logger.warning("producer of the metadata topic is replaced error=%s", error.name())
            with self._producer_lock:
                if self._producer is producer:
                    self._producer = self._new_producer()
        return RetriableError(
            "it is not known whether a record was written", error=error.name(), detail=error.str()
        )

    def _new_producer(self) -> Producer:
        config = _producer_config(self._client, self._timeouts.delivery_ms)
        return Producer(config, logger=logging.getLogger("librdkafka.producer"))


class _Delivery:
    """What became of one written record; `done` is called by whoever polls the producer."""

    def __init__(self) -> None:
        self.finished = False
        self.error: KafkaError | None = None
        self.offset = -1

    def done(self, error: KafkaError | None, message: Message) -> None:
        self.error = error
        if error is None:
            offset = message.offset()
            assert offset is not None, "a written record has an offset"
            self.offset = offset
        self.finished = True


def _consumer_config(client: Mapping[str, str], topic: str) -> dict[str, object]:
    return {
        "fetch.queue.backoff.ms": 2,
        # Partitions of one broker wait for each other that long, once each, at the start.
        "fetch.wait.max.ms": 100,
        "queued.min.messages": 100_000,
        **client,
        "allow.auto.create.topics": False,
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "group.id": f"{topic}.reader",  # never joined: assignment is manual
        "isolation.level": "read_uncommitted",
    }


def _producer_config(client: Mapping[str, str], delivery_timeout_ms: int) -> dict[str, object]:
    return {
        "linger.ms": 0,
        **client,
        "acks": "all",
        "allow.auto.create.topics": False,
        "delivery.timeout.ms": delivery_timeout_ms,
        "enable.idempotence": True,
    }
