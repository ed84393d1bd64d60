"""A fold of the topic after Kafka's cleaner equals a fold of all records ever written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Producer
from hypothesis import Phase, given, settings

from rlmm.positions import ReadPosition, TopicRecord
from rlmm.topic.kafka_reader import KafkaTopicReader
from rlmm.topic.memory import MemoryLog
from tests.folding import fold_contents, refusals
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import registration
from tests.metadata_worlds import World, worlds
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_LOG_COUNT = 16
_EAGER = {
    "cleanup.policy": "compact",
    "delete.retention.ms": "1",
    "max.compaction.lag.ms": "1",
    "message.timestamp.type": "CreateTime",  # deadlines depend on the random logs' timestamps
    "min.cleanable.dirty.ratio": "0",
    "segment.ms": "1000",
}
_ROLL_MS = 10_000


def drawn_worlds() -> list[World]:
    found: list[World] = []

    @settings(max_examples=_LOG_COUNT, phases=[Phase.generate], database=None)
    @given(worlds())
    def draw(world: World) -> None:
        found.append(world)

    draw()
    return found[-_LOG_COUNT:]


class CompactedTopic:
    """A topic with one partition for each log, compacted as far as the cleaner has come."""

    def __init__(self, kafka: KafkaCluster, name: str, worlds: Sequence[World]) -> None:
        kafka.create_topic(name, partitions=len(worlds), config=_EAGER)
        client = {"bootstrap.servers": kafka.bootstrap_servers}
        self._name = name
        self._worlds = worlds
        self._producer = Producer({**client, "enable.idempotence": True})
        self._reader = KafkaTopicReader(client, name)
        self._written = [0] * len(worlds)
        self._newest_ms = max(world.clock.now_ms for world in worlds)

    def write(self) -> None:
        """Write those records of the logs that the topic does not have yet."""
        for partition, world in enumerate(self._worlds):
            for record in world.log.records(0)[self._written[partition] :]:
                self._producer.produce(
                    self._name,
                    key=record.key,
                    value=record.value,
                    partition=partition,
                    timestamp=record.append_time_ms,
                )
            self._written[partition] = world.log.end_offset(0)
        assert self._producer.flush(30.0) == 0

    def roll(self) -> None:
        """Make written records cleanable, and add one more record to each cleaned partition."""
        self._newest_ms += _ROLL_MS
        for world in self._worlds:
            world.clock.now_ms = self._newest_ms
            world.write(registration(3))
        self.write()

    def records(self) -> list[list[TopicRecord]]:
        """Return all current records of each partition."""
        self._reader.assign({p: ReadPosition(offset=0) for p in range(len(self._worlds))})
        found: list[list[TopicRecord]] = [[] for _ in self._worlds]

        def all_read() -> bool:
            for record in self._reader.poll(max_records=5_000, timeout_ms=200):
                found[record.partition].append(record)
            return list(self._reader.positions().values()) == self._written

        wait_until(all_read, 30.0, "all records", interval_s=0.0)
        return found

    def close(self) -> None:
        self._reader.close()


def is_cleaned(records: Sequence[TopicRecord], drawn_count: int) -> bool:
    """Return whether no key of the random logs occurs twice, and no tombstone is left."""
    left = [record for record in records if record.offset < drawn_count]
    keys = {record.key for record in left}
    return len(keys) == len(left) and all(record.value is not None for record in left)


def test_fold_when_the_cleaner_has_been_there_then_equals_the_live_one(
    kafka: KafkaCluster, topic_name: str
) -> None:
    """R11, R12, scenario 29: at each stage of the cleaning, also when tombstones have expired."""
    drawn = drawn_worlds()
    logs = [world.log for world in drawn]
    topic = CompactedTopic(kafka, topic_name, drawn)
    topic.write()
    drawn_counts = [log.end_offset(0) for log in logs]

    def cleaned() -> bool:
        topic.roll()
        found = topic.records()
        for log, records in zip(logs, found, strict=True):
            compacted = MemoryLog(ManualClock())
            compacted.hold(0, records)
            assert fold_contents(compacted) == fold_contents(log)
        return all(map(is_cleaned, found, drawn_counts))

    wait_until(cleaned, 60.0, "all partitions to be cleaned", interval_s=0.5)

    topic.close()
    assert sum(map(refusals, logs), Counter()), "the random logs have no refused record"
    tombstones = [record for log in logs for record in log.records(0) if record.value is None]
    assert tombstones, "the random logs have no tombstone"
