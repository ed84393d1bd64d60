"""Reads a topic from given positions, by manual assignment and without a consumer group."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from rlmm.positions import ReadPosition, TopicRecord, new_record
from rlmm.topic.kafka_errors import (
    REPLACED_AFTER_S,
    finds_no_broker,
    kafka_error,
    map_error,
    replacement,
)
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_LEADERS_TIMEOUT_S = 1.0
_START_TIMEOUT_S = 5.0
_START_PAUSE_S = 0.005
_CANNOT_READ = "cannot read the topic"


class KafkaTopicReader:
    """Reads one topic of one cluster; `client` is librdkafka's configuration. Not thread-safe.

    Each time it gets no record for `replaced_after_s`, it checks whether librdkafka still knows a
    broker. If not, it replaces the consumer (rlmm.topic.kafka_errors).

    Memory: librdkafka's queue of fetched records (queued.max.messages.kbytes in total).
    """

    def __init__(
        self,
        client: Mapping[str, str],
        topic: str,
        *,
        fetch_wait_ms: int = 100,
        request_timeout_ms: int = 10_000,
        replaced_after_s: float = REPLACED_AFTER_S,
    ) -> None:
        """Create the consumer; the first call of a method connects it.

        A broker waits up to `fetch_wait_ms` for new records before it sends an empty response. So
        while no records arrive, the reader sends each broker one request in this time. When reading
        begins, each partition can wait this long, once, for the other partitions of its broker. The
        reader waits up to `request_timeout_ms` longer for a response, unless the client's
        `socket.timeout.ms` sets another limit. Then it connects again, perhaps to another leader.
        """
        self._topic = topic
        self._new_consumer = partial(
            _new_consumer, client, topic, fetch_wait_ms, request_timeout_ms
        )
        self._consumer = self._new_consumer()
        self._replaced_after_s = replaced_after_s
        self._heard_s = time.monotonic()
        self._positions: dict[int, int] = {}
        self._answered: set[int] = set()
        self._read_error: TieredStorageError | None = None

    def find_leaders(self) -> None:
        """Look up the partitions' leaders, so that the reader fetches at once after `assign`.

        Otherwise, librdkafka would look them up half a second later.
        """
        with suppress(KafkaException):
            self._consumer.list_topics(self._topic, timeout=_LEADERS_TIMEOUT_S)

    def partitions(self, timeout_ms: int) -> Sequence[int]:
        """Return the topic's partitions.

        Raises NotFoundError if the topic is missing, RetriableError if the cluster does not answer.
        """
        try:
            found = self._consumer.list_topics(self._topic, timeout=timeout_ms / 1000)
        except KafkaException as exception:
            raise map_error(kafka_error(exception), _CANNOT_READ, topic=self._topic) from exception
        topic = found.topics.get(self._topic)
        if topic is None or (topic.error is not None and _is_unknown(topic.error)):
            raise NotFoundError(f"{_CANNOT_READ}: the topic does not exist", topic=self._topic)
        if topic.error is not None:
            raise map_error(topic.error, _CANNOT_READ, topic=self._topic)
        return sorted(topic.partitions)

    def end_offsets(self, partitions: Sequence[int], timeout_ms: int) -> Mapping[int, int]:
        """Return each partition's end offset.

        Raises NotFoundError if the topic is missing, RetriableError if the cluster does not answer.
        """
        ends = {}
        for partition in partitions:
            try:
                found = self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, partition), timeout=timeout_ms / 1000
                )
            except KafkaException as exception:
                raise map_error(
                    kafka_error(exception), _CANNOT_READ, topic=self._topic
                ) from exception
            if found is None:
                raise RetriableError(
                    "cannot read the end of a partition: the cluster did not answer in time",
                    topic=self._topic,
                    partition=partition,
                )
            ends[partition] = found[1]
        # librdkafka reports no error for an unreachable leader, but returns no offset for it.
        if any(offset < 0 for offset in ends.values()):
            raise RetriableError(
                "cannot read the ends of the topic: a leader did not answer", topic=self._topic
            )
        return ends

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        """Implement EventTopic.assign. Raises RetriableError if reading does not begin in time."""
        self._read_error = None
        self._answered = set()
        self._positions = {partition: p.offset for partition, p in positions.items()}
        assigned = [self._topic_partition(partition, p) for partition, p in positions.items()]
        self._consumer.assign(assigned)
        give_up_s = time.monotonic() + _START_TIMEOUT_S
        for each in assigned:
            if each.leader_epoch is not None:
                self._confirm(each, give_up_s)

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        """Implement EventTopic.poll. Also raises RetriableError if it replaced the consumer."""
        if self._read_error is not None:
            error, self._read_error = self._read_error, None
            raise error
        # Wait for one record only: `consume` would wait for `max_records` of them.
        messages = self._consumer.consume(1, timeout_ms / 1000)
        if messages and max_records > 1:
            messages += self._consumer.consume(max_records - 1, 0)
        records = self._taken(messages)
        if records:
            self._heard_s = time.monotonic()
        elif time.monotonic() - self._heard_s > self._replaced_after_s:
            self._require_broker()
        if self._read_error is not None and not records:
            return self.poll(max_records=max_records, timeout_ms=timeout_ms)
        return records

    def positions(self) -> Mapping[int, int]:
        """Implement EventTopic.positions."""
        return dict(self._positions)

    def answered(self) -> Collection[int]:
        """Implement EventTopic.answered."""
        return self._answered

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _require_broker(self) -> None:
        """Replace the consumer if it no longer knows a broker.

        Raises RetriableError if it replaced the consumer; the caller must then assign again.
        """
        self._heard_s = time.monotonic()
        try:
            self._consumer.list_topics(self._topic, timeout=_LEADERS_TIMEOUT_S)
        except KafkaException as exception:
            error = kafka_error(exception)
            if not finds_no_broker(error):
                return
            new = replacement(self._new_consumer)
            self._consumer.close()
            self._consumer = new
            _log.info(LogLine("replaced the consumer of a topic: it found no broker"))
            raise map_error(error, _CANNOT_READ, topic=self._topic) from exception

    def _confirm(self, position: TopicPartition, give_up_s: float) -> None:
        """Make librdkafka ask the broker whether the partition still contains the read records.

        librdkafka asks when it seeks with a leader epoch, but not when it assigns. A seek fails
        until librdkafka's thread has started the partition.
        """
        while True:
            try:
                self._consumer.seek(position)
            except KafkaException as exception:
                error = kafka_error(exception)
                if error.code() != KafkaError._STATE:  # noqa: SLF001 - spelled so
                    raise map_error(
                        error, _CANNOT_READ, partition=position.partition
                    ) from exception
                if time.monotonic() > give_up_s:
                    raise RetriableError(
                        "cannot read the topic: the consumer did not start the partition in time",
                        topic=self._topic,
                        partition=position.partition,
                    ) from exception
            else:
                return
            time.sleep(_START_PAUSE_S)

    def _taken(self, messages: Sequence[Message]) -> list[TopicRecord]:
        """Return the records among the messages, and note the ends and errors among them."""
        answered, positions = self._answered, self._positions
        records = []
        for message in messages:
            partition, offset = message.partition(), message.offset()
            if message.error() is not None or partition is None or offset is None:
                self._note(message)
                continue
            answered.add(partition)
            positions[partition] = offset + 1
            epoch = message.leader_epoch()
            record = (
                partition,
                offset,
                message.timestamp()[1],
                message.key() or b"",
                message.value(),
                -1 if epoch is None else epoch,
            )
            records.append(new_record(record))
        return records

    def _note(self, message: Message) -> None:
        """Note that a partition's end was reached, or keep an error for the next poll.

        This poll can then still return the records that arrived together with the error.
        """
        partition, offset, error = message.partition(), message.offset(), message.error()
        assert error is not None, "a record has a partition and an offset"
        if partition is None or offset is None or partition < 0:
            self._read_error = map_error(error, _CANNOT_READ, topic=self._topic)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - spelled so
            self._answered.add(partition)
            self._positions[partition] = max(self._positions.get(partition, 0), offset)
        else:
            self._read_error = map_error(
                error, _CANNOT_READ, topic=self._topic, partition=partition
            )

    def _topic_partition(self, partition: int, position: ReadPosition) -> TopicPartition:
        if position.offset == 0:
            return TopicPartition(self._topic, partition, OFFSET_BEGINNING)
        if position.leader_epoch < 0:
            return TopicPartition(self._topic, partition, position.offset)
        return TopicPartition(
            self._topic, partition, position.offset, leader_epoch=position.leader_epoch
        )


def _is_unknown(error: KafkaError) -> bool:
    return error.code() in (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - spelled so
    )


def _new_consumer(
    client: Mapping[str, str], topic: str, fetch_wait_ms: int, request_timeout_ms: int
) -> Consumer:
    config = consumer_config(client, topic, fetch_wait_ms, request_timeout_ms)
    return Consumer(config, logger=logging.getLogger("librdkafka.consumer"))


def consumer_config(
    client: Mapping[str, str], topic: str, fetch_wait_ms: int, request_timeout_ms: int
) -> dict[str, object]:
    """Return the reader's settings; those that make reads complete override the client's.

    A leader that is cut off does not close its connections. librdkafka looks for the next leader
    only after `socket.timeout.ms`, by default a minute.
    """
    return {
        "fetch.queue.backoff.ms": 2,
        "fetch.wait.max.ms": fetch_wait_ms,
        "queued.min.messages": 100_000,
        "socket.timeout.ms": request_timeout_ms,
        **client,
        "allow.auto.create.topics": False,
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "group.id": f"{topic}.reader",  # No group is joined, because assignment is manual.
        "isolation.level": "read_uncommitted",
    }
