"""The metadata topic in memory: a log that several clients share, and its compaction on demand.

A faithful twin of the Kafka binding for tests and simulations: offsets without reuse, append times
from the clock it is given, tombstones, gaps after compaction, a topic recreated under its readers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from threading import Condition

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.event_topic import EventTopic, Published
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError, RetriableError


class MemoryLog:
    """What the brokers would hold of one topic. Thread-safe."""

    def __init__(
        self,
        clock: Clock,
        *,
        partition_count: int = 1,
        cluster_id: str = "memory",
        topic_id: str = "topic-1",
    ) -> None:
        self._clock = clock
        self._partition_count = partition_count
        self._cluster_id = cluster_id
        self.changed = Condition()
        self.recreate(topic_id)

    def delete(self) -> None:
        """Delete the topic with all its records."""
        with self.changed:
            self.deleted = True
            self.changed.notify_all()

    def recreate(self, topic_id: str) -> None:
        """Delete the topic and create it again, empty, with another id."""
        with self.changed:
            self.deleted = False
            self.identity = TopicIdentity(
                cluster_id=self._cluster_id,
                topic_id=topic_id,
                partition_count=self._partition_count,
            )
            self._records: list[list[TopicRecord]] = [[] for _ in range(self._partition_count)]
            self._ends = [0] * self._partition_count

    def append(self, partition: int, key: bytes, value: bytes | None) -> Published:
        """Append a record as of now. RetriableError while the topic is deleted."""
        with self.changed:
            if self.deleted:
                raise RetriableError("the topic is not there")
            offset = self._ends[partition]
            self._ends[partition] = offset + 1
            record = TopicRecord(
                partition=partition,
                offset=offset,
                append_time_ms=self._clock.wall_ms(),
                key=key,
                value=value,
                leader_epoch=0,
            )
            self._records[partition].append(record)
            self.changed.notify_all()
        return Published(partition=partition, offset=offset)

    def compact(self, partition: int, upto_offset: int, *, drop_tombstones: bool = False) -> None:
        """Keep of the records below an offset only the last of each key, as the cleaner does.

        `drop_tombstones` as if delete.retention.ms had passed for all of them.
        """
        with self.changed:
            records = self._records[partition]
            last = {r.key: r.offset for r in records if r.offset < upto_offset}
            self._records[partition] = [
                r
                for r in records
                if r.offset >= upto_offset
                or (last[r.key] == r.offset and not (drop_tombstones and r.value is None))
            ]

    def records(self, partition: int) -> tuple[TopicRecord, ...]:
        """All records that are left."""
        with self.changed:
            return tuple(self._records[partition])

    def records_from(self, partition: int, offset: int, max_records: int) -> list[TopicRecord]:
        """The next records from an offset on."""
        with self.changed:
            records = self._records[partition]
            start = bisect_left(records, offset, key=lambda record: record.offset)
            return records[start : start + max_records]

    def end_offset(self, partition: int) -> int:
        """The next offset to be written."""
        with self.changed:
            return self._ends[partition]


class MemoryTopic(EventTopic):
    """One process's client of a MemoryLog."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._positions: dict[int, int] = {}

    def ensure(self, *, create: bool) -> TopicIdentity:
        with self._log.changed:
            if self._log.deleted and not create:
                raise NotFoundError("the topic is not there")
            if self._log.deleted:
                self._log.recreate(f"{self._log.identity.topic_id}+")
        return self._log.identity

    def publish(self, partition: int, key: bytes, value: bytes | None) -> Published:
        return self._log.append(partition, key, value)

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._positions = {partition: p.offset for partition, p in positions.items()}

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        with self._log.changed:
            self._log.changed.wait_for(self._has_more, timeout_ms / 1000)
            records: list[TopicRecord] = []
            for partition, offset in self._positions.items():
                found = self._log.records_from(partition, offset, max_records - len(records))
                records.extend(found)
                if len(records) < max_records:
                    self._positions[partition] = self._log.end_offset(partition)
                elif found:
                    self._positions[partition] = found[-1].offset + 1
            return records

    def positions(self) -> Mapping[int, int]:
        return dict(self._positions)

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return {partition: self._log.end_offset(partition) for partition in partitions}

    def close(self) -> None:
        """Nothing is held."""

    def _has_more(self) -> bool:
        if self._log.deleted:
            raise NotFoundError("the topic is not there")
        more = False
        for partition, offset in self._positions.items():
            end_offset = self._log.end_offset(partition)
            if offset > end_offset:
                raise NotFoundError("position beyond the end", partition=partition, offset=offset)
            more = more or offset < end_offset
        return more
