"""Writes and reads canary topics through librdkafka. See rlm.broker.topics.canary_topics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rlm.broker.topics.canary_topics import CanaryTopics
from rlm.facts.canary_records import CanaryRead, CanaryRecord, CanaryWritten
from rsm.segment.errors import RetriableError

_POLL_S = 0.1
_MAX_RECORDS = 500
_CLIENT_LOG = logging.getLogger("librdkafka.canary")

ClientOf = Callable[[str | None], Mapping[str, str]]
"""Returns librdkafka's configuration for a bootstrap address; None means the brokers' own."""


class KafkaCanaryTopics(CanaryTopics):
    """Accesses the canary topics through librdkafka, with a new client for each call."""

    def __init__(self, client_of: ClientOf) -> None:
        self._client_of = client_of

    def names(self, timeout_ms: int) -> Sequence[str]:
        with _retriable("cannot list the topics"):
            return sorted(self._admin().list_topics(timeout=timeout_ms / 1000).topics)

    def create(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        timeout_ms: int,
    ) -> None:
        assignment = [list(each) for each in replicas]
        new = NewTopic(name, len(replicas), replica_assignment=assignment, config=dict(configs))
        # The variable keeps the client alive, because freeing it ends its requests.
        admin = self._admin()
        with _retriable("cannot create the canary topic", topic=name):
            created = admin.create_topics([new], request_timeout=timeout_ms / 1000)
            created[name].result(timeout_ms / 1000)

    def delete(self, name: str, timeout_ms: int) -> None:
        admin = self._admin()
        try:
            with _retriable("cannot delete the canary topic", topic=name):
                deleted = admin.delete_topics([name], request_timeout=timeout_ms / 1000)
                deleted[name].result(timeout_ms / 1000)
        except RetriableError as error:
            if error.context.get("error") != "UNKNOWN_TOPIC_OR_PART":
                raise

    def write(
        self, address: str | None, topic: str, records: Iterable[CanaryRecord], timeout_ms: int
    ) -> CanaryWritten:
        asked = tuple(records)
        outcome = _WriteOutcome()
        try:
            producer = Producer(
                {
                    **self._client_of(address),
                    "enable.idempotence": True,
                    "delivery.timeout.ms": timeout_ms,
                    "linger.ms": 0,
                    "error_cb": outcome.errors.note,
                },
                logger=_CLIENT_LOG,
            )
            for each in asked:
                producer.produce(
                    topic,
                    partition=each.partition,
                    value=each.value,
                    timestamp=each.timestamp_ms,
                    on_delivery=outcome.record_delivery,
                )
            producer.flush(timeout_ms / 1000 + 1)
            if len(outcome.positions) < len(asked):
                producer.purge()
                producer.flush(_POLL_S)
        except KafkaException as exception:
            outcome.errors.note(exception.args[0])
        return CanaryWritten(positions=outcome.positions, problem=outcome.problem(asked))

    def read(
        self, address: str | None, topic: str, ends: Mapping[int, int], timeout_ms: int
    ) -> CanaryRead:
        errors = _LastError()
        reading = _Reading(topic=topic, ends=ends, give_up_s=time.monotonic() + timeout_ms / 1000)
        try:
            consumer = Consumer(
                {
                    **self._client_of(address),
                    "group.id": "rlm-check",  # The consumer needs an id, but never joins the group.
                    "auto.offset.reset": "error",
                    "enable.auto.commit": False,
                    "allow.auto.create.topics": False,
                    "error_cb": errors.note,
                },
                logger=_CLIENT_LOG,
            )
            try:
                reading.run(consumer)
            finally:
                consumer.close()
        except KafkaException as exception:
            errors.note(exception.args[0])
        return CanaryRead(
            found=reading.found, earliest=reading.earliest, problem=reading.problem(errors)
        )

    def _admin(self) -> AdminClient:
        return AdminClient(dict(self._client_of(None)), logger=_CLIENT_LOG)


class _LastError:
    """Represents librdkafka's last error."""

    def __init__(self) -> None:
        self.text = ""

    def note(self, error: KafkaError) -> None:
        self.text = error.str() or error.name()


@dataclass(slots=True)
class _WriteOutcome:
    """Represents the outcome of the records of one `write`."""

    positions: dict[tuple[int, int], bytes] = field(default_factory=dict)
    errors: _LastError = field(default_factory=_LastError)
    failed: dict[str, int] = field(default_factory=dict)

    def record_delivery(self, error: KafkaError | None, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if error is not None:
            self.failed[error.str()] = self.failed.get(error.str(), 0) + 1
        elif partition is not None and offset is not None and value is not None:
            self.positions[partition, offset] = value

    def problem(self, asked: Sequence[CanaryRecord]) -> str:
        written = {position[0] for position in self.positions}
        absent = sorted({each.partition for each in asked} - written)
        if not absent:
            return ""
        reason = (
            next(iter(self.failed), "") or self.errors.text or "the cluster did not answer in time"
        )
        if self.errors.text and self.errors.text not in reason:
            reason = f"{reason}; {self.errors.text}"
        return f"cannot write records (partitions: {_listed(absent)}): {reason}"


@dataclass(slots=True)
class _Reading:
    """Represents one read of the partitions in `ends` from their earliest offsets."""

    topic: str
    ends: Mapping[int, int]
    give_up_s: float
    found: dict[tuple[int, int], bytes] = field(default_factory=dict)
    earliest: dict[int, int] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    led_to: str = ""

    def run(self, consumer: Consumer) -> None:
        """Read until every end or the deadline is reached. Raises KafkaException."""
        brokers = consumer.list_topics(self.topic, timeout=self._left_s()).brokers.values()
        self.led_to = ", ".join(
            f"broker {each.id}={each.host}:{each.port}"
            for each in sorted(brokers, key=lambda broker: broker.id)
        )
        for number in self.ends:
            asked = TopicPartition(self.topic, number)
            low, _ = consumer.get_watermark_offsets(asked, timeout=self._left_s())
            self.earliest[number] = self.positions[number] = low
        consumer.assign(
            [TopicPartition(self.topic, number, low) for number, low in self.earliest.items()]
        )
        while self._behind() and time.monotonic() < self.give_up_s:
            for message in consumer.consume(_MAX_RECORDS, timeout=_POLL_S):
                self._take(message)

    def problem(self, errors: _LastError) -> str:
        behind = self._behind()
        if not behind:
            return ""
        reason = errors.text or "the brokers sent no records in time"
        led_to = f"; the metadata response contains {self.led_to}" if self.led_to else ""
        return f"cannot read all records (partitions: {_listed(behind)}): {reason}{led_to}"

    def _take(self, message: Message) -> None:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None:
            if error.retriable() or error.code() < 0:
                return
            raise KafkaException(error)
        assert partition is not None
        assert offset is not None
        self.found[partition, offset] = message.value() or b""
        self.positions[partition] = offset + 1

    def _behind(self) -> list[int]:
        return sorted(n for n, end in self.ends.items() if self.positions.get(n, -1) < end)

    def _left_s(self) -> float:
        return max(_POLL_S, self.give_up_s - time.monotonic())


@contextmanager
def _retriable(message: str, **context: object) -> Iterator[None]:
    """Convert librdkafka's errors to RetriableError."""
    try:
        yield
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        raise RetriableError(
            message, **context, error=error.name(), reason=error.str()
        ) from exception
    except TimeoutError as error:
        raise RetriableError(
            message, **context, reason="the cluster did not answer in time"
        ) from error


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
