"""A topic of transactions, of which a read_committed reader must find only some."""

from __future__ import annotations

from confluent_kafka import Producer

from tests.e2e.three_brokers.written_topic import RECORDS_PER_SEGMENT, WrittenRecord, WrittenTopic
from tests.services.kafka import KafkaCluster

_RECORDS_PER_TRANSACTION = 20
_ABORTED_EVERY = 3


class TransactionalTopic(WrittenTopic):
    """One partition; `last_aborted_offset` is where the long aborted transaction begins."""

    def __init__(self, cluster: KafkaCluster, name: str) -> None:
        super().__init__(cluster, name, partitions=1)
        self.last_aborted_offset = -1

    def produce(self, segments: int = 2) -> None:
        """Write segments of short transactions; then a long one, aborted; then one committed."""
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "transactional.id": self.name,
                "batch.num.messages": 4,
            }
        )
        producer.init_transactions(30.0)
        for number in range(segments * RECORDS_PER_SEGMENT // _RECORDS_PER_TRANSACTION):
            is_kept = number % _ABORTED_EVERY > 0
            self._transaction(producer, _RECORDS_PER_TRANSACTION, is_kept=is_kept)
        aborted = self._transaction(producer, 2 * RECORDS_PER_SEGMENT, is_kept=False)
        self.last_aborted_offset = aborted[0].offset
        self._transaction(producer, _RECORDS_PER_TRANSACTION, is_kept=True)

    def _transaction(self, producer: Producer, count: int, *, is_kept: bool) -> list[WrittenRecord]:
        taken: list[WrittenRecord] = []
        producer.begin_transaction()
        for _ in range(count):
            self.write(producer, 0, taken.append)
        assert producer.flush(30.0) == 0
        if is_kept:
            producer.commit_transaction(30.0)
            self.records[0] += taken
        else:
            producer.abort_transaction(30.0)
        return taken
