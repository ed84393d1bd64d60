"""Implements the metadata topic in memory, for tests and simulations.

Several clients share one log, which is compacted on demand. As in Kafka, compacted offsets are
missing. Append times come from the given clock. A test can recreate or truncate the topic while
clients read it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from threading import Condition

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rlmm.topic.event_topic import EventTopic, PositionLostError, PublishedPosition
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError, RetriableError


class MemoryLog:
    """The log of one topic, as the brokers have it. Thread-safe."""

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
        """Delete the topic, and create an empty one with the id `topic_id`."""
        with self.changed:
            self.deleted = False
            self.identity = TopicIdentity(
                cluster_id=self._cluster_id,
                topic_id=topic_id,
                partition_count=self._partition_count,
            )
            self._records: list[list[TopicRecord]] = [[] for _ in range(self._partition_count)]
            self._ends = [0] * self._partition_count
            self._epochs = [[0] for _ in range(self._partition_count)]

    def cut(self, partition: int, end_offset: int) -> None:
        """Truncate a partition at `end_offset` and begin an epoch, as an unclean election does."""
        with self.changed:
            records = self._records[partition]
            self._records[partition] = [r for r in records if r.offset < end_offset]
            self._ends[partition] = end_offset
            epochs = [start for start in self._epochs[partition] if start < end_offset]
            # An epoch that lost all of its records now ends at its start.
            lost_count = len(self._epochs[partition]) - len(epochs)
            self._epochs[partition] = [*epochs, *[end_offset] * (lost_count + 1)]
            self.changed.notify_all()

    def epoch_end_offset(self, partition: int, leader_epoch: int) -> int:
        """Return the offset after the last record of this epoch or an earlier one."""
        with self.changed:
            later = self._epochs[partition][leader_epoch + 1 :]
            return later[0] if later else self._ends[partition]

    def append(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        """Append a record. Raises RetriableError while the topic is deleted."""
        with self.changed:
            if self.deleted:
                raise RetriableError("the topic does not exist")
            offset = self._ends[partition]
            self._ends[partition] = offset + 1
            record = TopicRecord(
                partition=partition,
                offset=offset,
                append_time_ms=self._clock.wall_ms(),
                key=key,
                value=value,
                leader_epoch=len(self._epochs[partition]) - 1,
            )
            self._records[partition].append(record)
            self.changed.notify_all()
        return PublishedPosition(partition=partition, offset=offset)

    def compact(self, partition: int, upto_offset: int, *, drop_tombstones: bool = False) -> None:
        """Remove older records of each key below an offset, as the log cleaner does.

        If `drop_tombstones` is true, also remove the tombstones below the offset, as the log
        cleaner does after delete.retention.ms.
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

    def hold(self, partition: int, records: Sequence[TopicRecord]) -> None:
        """Replace a partition's records with `records`; keep their offsets and append times."""
        with self.changed:
            self._records[partition] = [each._replace(partition=partition) for each in records]
            self._ends[partition] = records[-1].offset + 1 if records else 0

    def records(self, partition: int) -> tuple[TopicRecord, ...]:
        """Return all records of a partition that compaction left."""
        with self.changed:
            return tuple(self._records[partition])

    def records_from(self, partition: int, offset: int, max_records: int) -> list[TopicRecord]:
        """Return up to `max_records` records, starting at an offset."""
        with self.changed:
            records = self._records[partition]
            start = bisect_left(records, offset, key=lambda record: record.offset)
            return records[start : start + max_records]

    def end_offset(self, partition: int) -> int:
        """Return the log end offset of a partition."""
        with self.changed:
            return self._ends[partition]


class MemoryTopic(EventTopic):
    """One process's client of a MemoryLog. Only `publish` and `end_offsets` are thread-safe."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._positions: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._answered: set[int] = set()

    def ensure(self, *, create: bool) -> TopicIdentity:
        with self._log.changed:
            if self._log.deleted and not create:
                raise NotFoundError("the topic does not exist")
            if self._log.deleted:
                self._log.recreate(f"{self._log.identity.topic_id}+")
        return self._log.identity

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        return self._log.append(partition, key, value)

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._positions = {partition: p.offset for partition, p in positions.items()}
        self._epochs = {partition: p.leader_epoch for partition, p in positions.items()}
        self._answered = set()

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        with self._log.changed:
            self._log.changed.wait_for(self._has_more, timeout_ms / 1000)
            records: list[TopicRecord] = []
            for partition, offset in self._positions.items():
                found = self._log.records_from(partition, offset, max_records - len(records))
                records.extend(found)
                if found:
                    self._epochs[partition] = found[-1].leader_epoch
                if len(records) < max_records:
                    self._answered.add(partition)
                    self._positions[partition] = self._log.end_offset(partition)
                elif found:
                    self._answered.add(partition)
                    self._positions[partition] = found[-1].offset + 1
            return records

    def positions(self) -> Mapping[int, int]:
        return dict(self._positions)

    def answered(self) -> Collection[int]:
        return self._answered

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return {partition: self._log.end_offset(partition) for partition in partitions}

    def close(self) -> None:
        """Do nothing: the client has no resources."""

    def _has_more(self) -> bool:
        if self._log.deleted:
            raise NotFoundError("the topic does not exist")
        more = len(self._answered) < len(self._positions)  # This reports each end once.
        for partition, offset in self._positions.items():
            end_offset = self._log.end_offset(partition)
            epoch = self._epochs[partition]
            if offset > (end_offset if epoch < 0 else self._log.epoch_end_offset(partition, epoch)):
                raise PositionLostError("the topic lost the position", partition=partition)
            more = more or offset < end_offset
        return more
