"""Whole partitions read with librdkafka: from the brokers themselves, or through gateways."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.services.waiting import wait_until

Partition = tuple[str, int]  # topic and partition

_POLL_S = 0.2


@dataclass(kw_only=True)
class PartitionLog:
    """The records that were read from one partition: a digest for each offset.

    `next_offset` is the offset after the last record. `repeated_count` counts records at an offset
    that was read before. `skipped_count` counts how often the brokers had deleted the next offset.
    """

    digests: dict[int, bytes] = field(default_factory=dict)
    next_offset: int = 0
    repeated_count: int = 0
    skipped_count: int = 0


def digest_of(key: bytes | None, value: bytes | None, timestamp_ms: int) -> bytes:
    """Return a few bytes that distinguish records."""
    content = b"%d %d " % (timestamp_ms, -1 if key is None else len(key))
    return hashlib.blake2b(content + (key or b"") + (value or b""), digest_size=8).digest()


class LogReader:
    """Reads partitions from their first offset on. Not thread-safe."""

    def __init__(
        self, bootstrap_servers: str, partitions: tuple[Partition, ...], *, is_committed: bool
    ) -> None:
        self.logs = {partition: PartitionLog() for partition in partitions}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "chaos",  # never joined
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,  # the last offsets may be transaction markers
                "isolation.level": "read_committed" if is_committed else "read_uncommitted",
                "fetch.queue.backoff.ms": 2,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(*partition, 0) for partition in partitions])

    def poll(self) -> None:
        """Take over the received records."""
        for message in self._consumer.consume(2_000, timeout=_POLL_S):
            topic, number = message.topic(), message.partition()
            assert topic is not None
            assert number is not None
            partition = (topic, number)
            error = message.error()
            if error is None:
                _take(self.logs[partition], message)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._begin_again(partition)

    def positions(self) -> Mapping[Partition, int]:
        """Return the next offset of each partition, past transaction markers."""
        found = self._consumer.position([TopicPartition(*partition) for partition in self.logs])
        return {(each.topic, each.partition): each.offset for each in found}

    def end_offsets(self) -> Mapping[Partition, int]:
        """Return the current high watermarks; all partitions must have records."""
        return {
            partition: wait_until(partial(self._end_offset, partition), describe=f"{partition}")
            for partition in self.logs
        }

    def read_to(self, ends: Mapping[Partition, int], *, deadline_s: float) -> None:
        """Read on up to these offsets. Raises AssertionError if that takes too long."""
        give_up_at = time.monotonic() + deadline_s
        while any(self.positions()[partition] < end for partition, end in ends.items()):
            self.poll()
            assert time.monotonic() < give_up_at, f"at {self.positions()}, expected {ends}"

    def close(self) -> None:
        self._consumer.close()

    def _end_offset(self, partition: Partition) -> int:
        """Return the partition's high watermark; 0 while its leader moves."""
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(*partition), timeout=10.0)[1]
        except KafkaException:
            return 0

    def _begin_again(self, partition: Partition) -> None:
        """Continue at the current start of the log; the records in between are skipped.

        Equal bounds prove nothing: librdkafka can report a log as empty while its leader moves.
        """
        self.logs[partition].skipped_count += 1
        low = high = 0
        with suppress(KafkaException):
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(*partition), timeout=5.0
            )
        next_offset = self.logs[partition].next_offset
        start = next_offset if low == high else max(low, next_offset)
        self._consumer.incremental_unassign([TopicPartition(*partition)])
        self._consumer.incremental_assign([TopicPartition(*partition, start)])


class Witness:
    """Reads the brokers on its own thread while producers write."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def finish(self) -> LogReader:
        """Stop following; the reader may then read on to the end."""
        self._over.set()
        self._thread.join(30.0)
        return self._reader

    def _run(self) -> None:
        while not self._over.is_set():
            self._reader.poll()


def _take(log: PartitionLog, message: Message) -> None:
    offset = message.offset()
    assert offset is not None
    log.repeated_count += offset < log.next_offset
    _, timestamp_ms = message.timestamp()
    log.digests[offset] = digest_of(message.key(), message.value(), timestamp_ms)
    log.next_offset = max(log.next_offset, offset + 1)
