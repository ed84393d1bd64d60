"""A topic of three replicas, the records written to it, and what a reader must find in it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported without __all__

from tests.clients.record_digests import PartitionRead, RecordDigests
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of
from tests.services.kafka import KafkaBroker, KafkaCluster, admin_client
from tests.services.waiting import wait_until

SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 8_000
RECORDS_PER_SEGMENT = SEGMENT_BYTES // VALUE_BYTES
TIMESTAMP_STEP_MS = 1_000
_TIERED_DEADLINE_S = 90.0
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRecord:
    """A record as the broker accepted it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class WrittenTopic:
    """A topic and its records: `records` has the committed ones by partition, by offset."""

    def __init__(self, cluster: KafkaCluster, name: str, *, partitions: int) -> None:
        self.name = name
        self.records: dict[int, list[WrittenRecord]] = {each: [] for each in range(partitions)}
        self._cluster = cluster
        self._written = dict.fromkeys(self.records, 0)
        # Old records, so that a short local retention trims all and no segment rolls by time.
        self.first_timestamp_ms = int(time.time() * 1_000) - 3_600_000
        config = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
        cluster.create_topic(name, partitions=partitions, replication_factor=3, config=config)

    def grow(self, partitions: int) -> None:
        """Add partitions, up to this count; wait until all have leaders."""
        self._cluster.add_partitions(self.name, partitions)
        for number in range(len(self.records), partitions):
            self.records[number] = []
            self._written[number] = 0

    def produce(self, segments: int) -> None:
        """Write this number of segments to each partition, with all compression codecs."""
        for codec in _CODECS:
            producer = Producer(
                {
                    "bootstrap.servers": self._cluster.bootstrap_servers,
                    "enable.idempotence": True,
                    "linger.ms": 5,
                    "batch.num.messages": 7,
                    "compression.type": codec,
                }
            )
            for _ in range(segments * RECORDS_PER_SEGMENT // len(_CODECS) + 1):
                for partition in self.records:
                    self.write(producer, partition, self.records[partition].append)
            assert producer.flush(30.0) == 0

    def write(
        self, producer: Producer, partition: int, taken: Callable[[WrittenRecord], None]
    ) -> None:
        """Produce one record; call `taken` when the broker has it."""
        value = random.SystemRandom().randbytes(VALUE_BYTES)
        key = None if value[0] < 64 else value[:8]
        headers: list[tuple[str, bytes | None]] = [("h", value[:4]), ("none", None)]
        timestamp_ms = self.first_timestamp_ms + TIMESTAMP_STEP_MS * self._written[partition]
        self._written[partition] += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            taken(
                WrittenRecord(
                    offset=offset, timestamp_ms=timestamp_ms, key=key, value=value, headers=headers
                )
            )

        producer.produce(
            self.name,
            partition=partition,
            key=key,
            value=value,
            headers=list(headers),
            timestamp=timestamp_ms,
            on_delivery=delivered,
        )

    def tier(self, hosts: ThreeHosts) -> None:
        """Tier the topic, and trim the brokers' logs as far as possible."""
        newest_rolled = {each: self._newest_rolled_offset(each) for each in self.records}
        hosts.any_host.rlm("topic", "set", self.name, "--local-retention-ms", "1")
        self.wait_trimmed(newest_rolled)

    def wait_trimmed(self, wanted: dict[int, int] | None = None) -> None:
        """Wait until the brokers have trimmed all below the newest rolled segments."""
        wanted = wanted or {each: self._newest_rolled_offset(each) for each in self.records}
        starts: dict[int, int] = {}

        def are_trimmed() -> bool:
            starts.update(self.local_starts())
            return all(starts[number] >= offset > 0 for number, offset in wanted.items())

        wait_until(
            are_trimmed,
            _TIERED_DEADLINE_S,
            lambda: f"local starts {starts}, wanted {wanted}",
            despite=KafkaException,
        )

    def local_starts(self) -> dict[int, int]:
        """Return the local start offsets, as the leaders report them."""
        admin = admin_client(self._cluster.bootstrap_servers)
        earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # ships untyped
        asked = {TopicPartition(self.name, number): earliest for number in self.records}
        futures = admin.list_offsets(asked)
        return {each.partition: future.result(30.0).offset for each, future in futures.items()}

    def leaders(self) -> dict[int, int]:
        """Return the leaders' node ids by partition; -1 for none."""
        metadata = admin_client(self._cluster.bootstrap_servers).list_topics(self.name, 10.0)
        partitions = metadata.topics[self.name].partitions
        return {number: found.leader for number, found in partitions.items()}

    def wait_led_without(self, gone: KafkaBroker) -> None:
        """Wait until other brokers than `gone` lead all partitions."""
        wait_until(
            lambda: not {gone.node_id, -1} & set(self.leaders().values()),
            deadline_s=60.0,
            describe=f"others lead than {gone.node_id}",
            despite=KafkaException,
        )

    def expected(
        self, starts: dict[int, int] | None = None, *, end_offset: int | None = None
    ) -> dict[int, PartitionRead]:
        """Return what a reader from these offsets up to `end_offset` finds, in order."""
        digests = RecordDigests()
        for number, records in self.records.items():
            start = (starts or {}).get(number, 0)
            found = (each for each in records if each.offset >= start)
            _add(digests, number, (e for e in found if end_offset is None or e.offset < end_offset))
        return digests.reads()

    def expected_from_time(self, time_ms: int) -> dict[int, PartitionRead]:
        """Return what a reader finds that begins at the offset of a timestamp."""
        starts = {
            number: next(each.offset for each in records if each.timestamp_ms >= time_ms)
            for number, records in self.records.items()
        }
        return self.expected(starts)

    def base_offsets(self, number: int, *, node_id: int) -> list[int]:
        """Return the base offsets of a broker's segment files, ascending."""
        (log_dir,) = broker_of(self._cluster, node_id).log_dirs
        return sorted(int(path.stem) for path in log_dir.glob(f"{self.name}-{number}/*.log"))

    def _newest_rolled_offset(self, number: int) -> int:
        return self.base_offsets(number, node_id=self.leaders()[number])[-2]


def _add(digests: RecordDigests, number: int, records: Iterable[WrittenRecord]) -> None:
    for each in records:
        digests.add(
            partition=number,
            offset=each.offset,
            timestamp_ms=each.timestamp_ms,
            key=each.key,
            value=each.value,
            headers=each.headers,
        )
