"""Reads one partition from its leader: its ends, offsets by timestamp, and records.

librdkafka reads the records by manual assignment: it joins no group and commits nothing. If the
broker no longer has an offset, the read fails, because nothing resets the position.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.errors import error_of
from rlm.broker.list_offsets import fetch_first_offsets_since, fetch_partition_offsets
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.wire.connection import Requester
from rsm.segment.batches.batch import NO_TIMESTAMP, TimestampType
from rsm.segment.batches.records import Record
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_MAX_RECORDS = 2_000
_POLL_S = 0.2
_GONE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - spelled so

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """Represents a reader's settings; `client` is librdkafka's configuration.

    A read fails if no records arrive for `stall_timeout_ms`.
    """

    client: Mapping[str, str]
    read_committed: bool
    stall_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _PollResult:
    """Represents one poll; `next_offset` is the offset after its last one, -1 if it had none."""

    records: Sequence[Record]
    next_offset: int
    failure: TieredStorageError | None


class PartitionReader:
    """Reads from the partition's current leader. Not thread-safe.

    Raises RetriableError while there is no reachable leader, FencedError if the leader has just
    changed, and NotFoundError if the topic id or the partition does not exist. `records` does not
    check the topic id.
    """

    def __init__(
        self,
        topic_id_partition: TopicIdPartition,
        bootstrap: Bootstrap,
        clock: Clock,
        settings: ReaderSettings,
    ) -> None:
        self._partition = topic_id_partition
        self._bootstrap = bootstrap
        self._clock = clock
        self._settings = settings

    def offsets(self) -> PartitionOffsets:
        """Fetch the current log start, last stable offset and high watermark."""
        results = self._ask(fetch_partition_offsets)
        for error in results.failed.values():
            raise error
        return results.succeeded[self._partition]

    def start_offset(self) -> int:
        """Fetch the broker's current log start offset."""
        return self.offsets().log_start_offset

    def offset_since(self, timestamp_ms: int) -> int | None:
        """Fetch the first offset with a timestamp ≥ `timestamp_ms`; None if there is none."""
        results = self._ask(
            lambda leader, epochs: fetch_first_offsets_since(leader, epochs, timestamp_ms)
        )
        for error in results.failed.values():
            raise error
        return results.succeeded[self._partition]

    def records(self, from_offset: int, end_offset: int) -> Iterator[Sequence[Record]]:
        """Read [from_offset, end_offset).

        If the broker no longer has an offset, yields the records before it and raises
        NotFoundError. Raises RetriableError if no records arrive for `stall_timeout_ms`, for
        example because the log ends before `end_offset`.
        """
        consumer = Consumer(self._configuration(), logger=logging.getLogger("librdkafka.consumer"))
        try:
            tip = self._partition
            consumer.assign([TopicPartition(tip.topic, tip.partition, from_offset)])
            yield from self._consume(consumer, end_offset)
        finally:
            consumer.close()

    def _consume(self, consumer: Consumer, end_offset: int) -> Iterator[Sequence[Record]]:
        stalled_at_ms = self._clock.monotonic_ms() + self._settings.stall_timeout_ms
        next_offset = -1
        while next_offset < end_offset:
            taken = self._take(consumer.consume(_MAX_RECORDS, timeout=_POLL_S), end_offset)
            next_offset = max(next_offset, taken.next_offset)
            if taken.records:
                stalled_at_ms = self._clock.monotonic_ms() + self._settings.stall_timeout_ms
                yield taken.records
            if taken.failure is not None:
                raise taken.failure
            if next_offset < end_offset and self._clock.monotonic_ms() >= stalled_at_ms:
                raise RetriableError(
                    "cannot read the partition: the broker sent no records in time",
                    partition=self._partition,
                )

    def _take(self, messages: Iterable[Message], end_offset: int) -> _PollResult:
        """Return the records before `end_offset`, up to the first failure."""
        records: list[Record] = []
        next_offset = -1
        failure: TieredStorageError | None = None
        for message in messages:
            offset, error = message.offset(), message.error()
            if error is not None:
                failure = self._failure(error)
                if failure is not None:
                    break
                if error.code() == KafkaError._PARTITION_EOF and offset is not None:  # noqa: SLF001
                    # The offset is after transaction markers, which are no messages. It may be
                    # too low if a lagging replica sent it.
                    next_offset = offset
            elif offset is not None:
                next_offset = offset + 1
                if offset < end_offset:
                    records.append(_record_of(message, offset))
        return _PollResult(records=records, next_offset=next_offset, failure=failure)

    def _failure(self, error: KafkaError) -> TieredStorageError | None:
        """Return the error that ends the read; None at the log's end or if librdkafka retries."""
        code = error.code()
        if code in _GONE:
            return NotFoundError("the broker no longer has the offset", partition=self._partition)
        if code > 0 and not error.retriable():
            return error_of(code, partition=self._partition)
        return None

    def _ask(self, request: Callable[[Requester, Mapping[TopicIdPartition, int]], T]) -> T:
        tip = self._partition
        view = self._bootstrap.view((tip.topic,))
        topic = view.topic(tip.topic)
        found = next((p for p in topic.partitions if p.partition == tip.partition), None)
        if topic.topic_id != tip.topic_id:
            raise NotFoundError(
                "cannot read the partition: the topic was deleted and created again", partition=tip
            )
        if found is None:
            raise NotFoundError(
                "cannot read the partition: the topic has no such partition", partition=tip
            )
        if found.leader_id is None:
            raise RetriableError("cannot read the partition: it has no leader", partition=tip)
        address = view.brokers.get(found.leader_id)
        if address is None:
            raise RetriableError(
                "cannot read the partition: its leader is not live",
                partition=tip,
                leader=found.leader_id,
            )
        with self._bootstrap.at(address) as leader:
            return request(leader, {tip: found.leader_epoch})

    def _configuration(self) -> dict[str, object]:
        committed = self._settings.read_committed
        return {
            "fetch.queue.backoff.ms": 2,
            "queued.min.messages": 100_000,
            "check.crcs": True,
            **self._settings.client,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "group.id": "rlm-read",  # The consumer needs an id, but never joins the group.
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }


def _record_of(message: Message, offset: int) -> Record:
    kind, timestamp_ms = message.timestamp()
    append_time = kind == TIMESTAMP_LOG_APPEND_TIME
    headers = message.headers()
    return Record(
        offset=offset,
        timestamp_ms=NO_TIMESTAMP if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        timestamp_type=TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME,
        key=message.key(),
        value=message.value(),
        headers=tuple((name, _as_bytes(value)) for name, value in headers)
        if isinstance(headers, list)
        else (),
    )


def _as_bytes(value: str | bytes | None) -> bytes | None:
    # The binding's types also cover produced headers; consumed headers are bytes.
    return value.encode() if isinstance(value, str) else value
