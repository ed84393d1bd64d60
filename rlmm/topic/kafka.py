"""Reads and writes the metadata topic in Kafka, with confluent-kafka.

Writes use acks=all and idempotence, so that each record is appended at most once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from confluent_kafka import (
    KafkaError,
    KafkaException,
    Message,
    Producer,
)

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.event_topic import EventTopic, PublishedPosition, UnknownResultError
from rlmm.topic.kafka_admin import KafkaTopicAdmin
from rlmm.topic.kafka_errors import kafka_error, replacement
from rlmm.topic.kafka_reader import KafkaTopicReader
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import RetriableError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_DELIVERY_POLL_S = 0.005
_DELIVERY_SLACK_S = 5.0
_CLOSE_TIMEOUT_S = 2.0
_ADVICE = {
    # Formats before Kafka 0.11 have no idempotent writes.
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: (
        "Set message.format.version of the metadata topic to 0.11.0 or later"
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTimeouts:
    """The time limits of requests to the cluster.

    `fetch_wait_ms` limits how long a broker delays an empty fetch response; see KafkaTopicReader.
    `request_ms` limits each request, except writes. `produce_ms` limits each attempt to write a
    record, and `delivery_ms` all attempts together.
    """

    fetch_wait_ms: int = 100
    request_ms: int = 10_000
    produce_ms: int = 5_000
    delivery_ms: int = 15_000


class KafkaTopic(EventTopic):
    """One metadata topic of one cluster; `client` is librdkafka's configuration (client.*).

    Memory: librdkafka's queue of fetched records (queued.max.messages.kbytes in total), and
    its queue of records to write (one record per running call of `publish`).
    """

    def __init__(
        self,
        client: Mapping[str, str],
        settings: TopicSettings,
        timeouts: KafkaTimeouts | None = None,
    ) -> None:
        """Create the clients; the first call of a method connects them."""
        self._name = settings.name
        self._client = client
        self._timeouts = timeouts or KafkaTimeouts()
        self._admin = KafkaTopicAdmin(
            client, settings, request_timeout_ms=self._timeouts.request_ms
        )
        self._reader = KafkaTopicReader(
            client,
            settings.name,
            fetch_wait_ms=self._timeouts.fetch_wait_ms,
            request_timeout_ms=self._timeouts.request_ms,
        )
        self._producer = self._new_producer()
        self._producer_lock = Lock()
        self._closed = False

    def ensure(self, *, create: bool) -> TopicIdentity:
        identity = self._admin.ensure(create=create)
        self._reader.find_leaders()
        return identity

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        delivery = _Delivery()
        with self._producer_lock:
            producer = self._producer
        try:
            producer.produce(
                self._name, value=value, key=key, partition=partition, on_delivery=delivery.done
            )
        except KafkaException as exception:
            error = kafka_error(exception)
            self._replace_if_unusable(error, producer)
            raise RetriableError(
                "cannot write a record: the producer rejected it", error=error.name()
            ) from exception
        except BufferError as error:
            raise RetriableError("cannot write a record: the producer's queue is full") from error
        give_up_s = time.monotonic() + self._timeouts.delivery_ms / 1000 + _DELIVERY_SLACK_S
        while not delivery.finished:
            if time.monotonic() > give_up_s:
                self._replace_producer(producer, "no response")
                raise UnknownResultError(
                    "cannot confirm a write: the broker did not acknowledge it in time",
                    partition=partition,
                )
            producer.poll(_DELIVERY_POLL_S)
        if delivery.error is not None:
            self._replace_if_unusable(delivery.error, producer)
            # A rejection proves nothing: an earlier attempt may have appended the record.
            raise UnknownResultError(
                "cannot confirm that a record was written",
                partition=partition,
                error=delivery.error.name(),
                reason=delivery.error.str(),
                advice=_ADVICE.get(delivery.error.code()),
            )
        return PublishedPosition(partition=partition, offset=delivery.offset)

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._reader.assign(positions)

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        return self._reader.poll(max_records=max_records, timeout_ms=timeout_ms)

    def positions(self) -> Mapping[int, int]:
        return self._reader.positions()

    def answered(self) -> Collection[int]:
        return self._reader.answered()

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return self._admin.end_offsets(partitions)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._reader.close()
        self._producer.flush(_CLOSE_TIMEOUT_S)

    def _replace_if_unusable(self, error: KafkaError, producer: Producer) -> None:
        """Replace a producer that may be unusable after this error.

        After a fatal error, an idempotent producer cannot continue its sequence numbers. After a
        timeout, a producer may no longer know any broker (rlmm.topic.kafka_errors).
        """
        if error.fatal() or error.code() == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001 - spelled so
            self._replace_producer(producer, error.name())

    def _replace_producer(self, producer: Producer, reason: str) -> None:
        """Create a new producer for later writes; running writes keep the old one.

        If it cannot be created, the old one stays. The next failed write tries again.
        """
        with self._producer_lock:
            if self._producer is not producer:
                return
            try:
                self._producer = replacement(self._new_producer)
            except RetriableError as error:
                _log.warning(LogLine("kept the producer of the metadata topic", error=error))
                return
        _log.info(LogLine("replaced the producer of the metadata topic", error=reason))

    def _new_producer(self) -> Producer:
        config = producer_config(self._client, self._timeouts)
        return Producer(config, logger=logging.getLogger("librdkafka.producer"))


class _Delivery:
    """The outcome of one write; a poll of the producer calls `done`."""

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


def producer_config(client: Mapping[str, str], timeouts: KafkaTimeouts) -> dict[str, object]:
    """Return the producer's settings; those that make writes safe override the client's.

    `request.timeout.ms` limits how long the broker waits for its followers, and
    `socket.timeout.ms` how long librdkafka waits for the response. The Java client has one setting
    for both.
    """
    return {
        "linger.ms": 0,
        **client,
        "acks": "all",
        "allow.auto.create.topics": False,
        "delivery.timeout.ms": timeouts.delivery_ms,
        "enable.idempotence": True,
        "request.timeout.ms": timeouts.produce_ms,
        "socket.timeout.ms": timeouts.produce_ms,
    }
