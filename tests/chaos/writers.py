"""Producers that write until they are stopped, whatever happens to the brokers.

They remember the acknowledged, committed and aborted records. They count records without a response
as none of these.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.chaos.log_reading import Partition, digest_of

_VALUE_BYTES = 2_000
_PAUSE_S = 0.1
_BATCH_RECORDS = (
    8  # in each tenth of a second, to each partition: fills a segment of 1 MiB in seven seconds
)
_ABORTED_EVERY = 3
_TIMEOUT_S = 30.0


class Ledger:
    """Offsets and digests of the records, by outcome. Thread-safe."""

    def __init__(self) -> None:
        self.kept: defaultdict[Partition, dict[int, bytes]] = defaultdict(dict)
        self.aborted: defaultdict[Partition, dict[int, bytes]] = defaultdict(dict)
        self._lock = threading.Lock()

    def keep(self, records: list[tuple[Partition, int, bytes]]) -> None:
        """Record that these were acknowledged, and committed if a transaction wrote them."""
        with self._lock:
            for partition, offset, digest in records:
                self.kept[partition][offset] = digest

    def give_up(self, records: list[tuple[Partition, int, bytes]]) -> None:
        """Record that the transaction of these was aborted."""
        with self._lock:
            for partition, offset, digest in records:
                self.aborted[partition][offset] = digest

    @property
    def kept_count(self) -> int:
        with self._lock:
            return sum(map(len, self.kept.values()))

    @property
    def aborted_count(self) -> int:
        with self._lock:
            return sum(map(len, self.aborted.values()))


class Writer:
    """Writes to all partitions of a topic, on a thread of its own, with an idempotent producer."""

    def __init__(
        self, bootstrap_servers: str, partitions: tuple[Partition, ...], ledger: Ledger
    ) -> None:
        self._partitions = partitions
        self._ledger = ledger
        self._configuration = {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": "lz4",
            "message.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._over = threading.Event()
        self._delivered: list[tuple[Partition, int, bytes]] = []
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Stop writing, and wait for records in flight."""
        self._over.set()
        self._thread.join(4 * _TIMEOUT_S)

    def _run(self) -> None:
        while not self._over.is_set():
            producer = Producer(self._configuration)
            try:
                self._write_with(producer)
            except (
                KafkaException
            ):  # the producer failed permanently, or could not begin a transaction
                self._over.wait(_PAUSE_S)
            producer.flush(_TIMEOUT_S)
            self._settle(is_kept=True)

    def _write_with(self, producer: Producer) -> None:
        while not self._over.wait(_PAUSE_S):
            self._produce(producer)
            producer.poll(0)
            self._settle(is_kept=True)

    def _produce(self, producer: Producer) -> None:
        for partition in self._partitions:
            for _ in range(_BATCH_RECORDS):
                try:
                    self._produce_one(producer, partition)
                except BufferError:  # the brokers do not accept records fast enough
                    producer.poll(_PAUSE_S)

    def _produce_one(self, producer: Producer, partition: Partition) -> None:
        value, timestamp_ms = os.urandom(_VALUE_BYTES), int(time.time() * 1_000)
        digest = digest_of(None, value, timestamp_ms)

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None:
                self._delivered.append((partition, offset, digest))

        producer.produce(
            partition[0],
            partition=partition[1],
            value=value,
            timestamp=timestamp_ms,
            on_delivery=delivered,
        )

    def _settle(self, *, is_kept: bool) -> None:
        taken, self._delivered = self._delivered, []
        (self._ledger.keep if is_kept else self._ledger.give_up)(taken)


class TransactionalWriter(Writer):
    """Writes in transactions and aborts every third of them."""

    def __init__(
        self, bootstrap_servers: str, partitions: tuple[Partition, ...], ledger: Ledger
    ) -> None:
        super().__init__(bootstrap_servers, partitions, ledger)
        self._configuration |= {
            "transactional.id": f"chaos-{partitions[0][0]}",
            "transaction.timeout.ms": 20_000,
            "message.timeout.ms": 20_000,
        }

    def _write_with(self, producer: Producer) -> None:
        producer.init_transactions(_TIMEOUT_S)
        number = 0
        while not self._over.wait(_PAUSE_S):
            self._delivered = []
            producer.begin_transaction()
            self._produce(producer)
            self._end(producer, is_kept=number % _ABORTED_EVERY > 0)
            number += 1

    def _end(self, producer: Producer, *, is_kept: bool) -> None:
        """End the transaction; without a response it counts as neither committed nor aborted."""
        try:
            producer.flush(_TIMEOUT_S)
            if is_kept:
                producer.commit_transaction(_TIMEOUT_S)
            else:
                producer.abort_transaction(_TIMEOUT_S)
        except KafkaException as exception:
            self._delivered = []
            error = exception.args[0]
            if not error.txn_requires_abort():
                raise
            producer.abort_transaction(_TIMEOUT_S)
            return
        self._settle(is_kept=is_kept)

    def _run(self) -> None:
        while not self._over.is_set():
            producer = Producer(self._configuration)
            try:
                self._write_with(producer)
            except KafkaException:  # the next producer takes over the transactional id
                self._delivered = []
                self._over.wait(1.0)
