"""Publishes events to the metadata topic and answers queries from the cache (KIP-405).

`start` follows the topic on a thread. A simulation, or a program that reads only once, need not
call `start`: then each waiting call runs the follower itself, and all calls must be on one thread.

Only this module writes the owner's tombstones. It removes superseded records, such as trims,
after it has read back their accepted successor. `write_tombstones` removes the records of a deleted
segment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import Table
from rlmm.cached_answers import CachedAnswers
from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.events.registry import PARTITION_FAMILIES, TOPIC_FAMILIES, family_of, family_of_kind
from rlmm.events.segment import segment_keys
from rlmm.follow.assignment import Assignment
from rlmm.follow.follower import Follower, FollowerSettings
from rlmm.follow.follower_thread import FollowerThread
from rlmm.follow.progress import Progress
from rlmm.follow.shared_ends import SharedEnds
from rlmm.known_writes import KnownWrites
from rlmm.metrics import MetadataMetrics
from rlmm.partitioner import event_partition, metadata_partition, subject_partition
from rlmm.positions import CLUSTER_PARTITION
from rlmm.record_keys import (
    CLUSTER_KINDS,
    RecordKey,
    partition_subject,
    segment_subject,
)
from rlmm.spi import (
    PublishResult,
    Readiness,
)
from rlmm.state.partition_state import RemotePartitionDeleteState
from rlmm.topic.event_topic import EventTopic, PublishedPosition
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState

_log = logging.getLogger(__name__)

_PARTITION_DELETED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
_ALL = (1 << 63) - 1
_CLOSE_TIMEOUT_S = 10.0
_WHOLE_WAIT_MS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """Represents the settings of the metadata manager.

    `consume_wait_ms` limits the wait until a published event is applied or the topic's end is
    reached (Kafka's remote.log.metadata.consume.wait.ms). A segment's records are kept for
    `tombstone_grace_ms` after its deletion and its last copy deadline. If `follows_all`, the
    manager follows all metadata, not only that of hosted partitions.
    """

    follows_all: bool = True
    consume_wait_ms: int = 120_000
    tombstone_grace_ms: int = 86_400_000
    follower: FollowerSettings = field(default_factory=FollowerSettings)


class TopicBasedRemoteLogMetadataManager(CachedAnswers):
    """Owns the topic and the cache, and closes them. Thread-safe after `start`."""

    def __init__(
        self,
        topic: EventTopic,
        cache: MetadataCache,
        clock: Clock,
        settings: ManagerSettings | None = None,
    ) -> None:
        self._topic = topic
        self._clock = clock
        self._settings = settings or ManagerSettings()
        self._progress = Progress()
        self._assignment = Assignment(follows_all=self._settings.follows_all)
        self._follower = Follower(
            topic, cache, self._progress, clock, self._settings.follower, self._assignment
        )
        super().__init__(cache, self._follower)
        self._ends = SharedEnds(topic.end_offsets)
        self._writes = KnownWrites(topic, self._read_past)
        self._thread = FollowerThread(self._follower, clock)
        self._closed = False

    def start(self) -> None:
        """Start to follow the topic on a thread, until `close`. Call this at most once."""
        self._thread.start()

    def is_hanging(self) -> bool:
        """Return whether only a restart of the process can resume following. Thread-safe."""
        return self._thread.is_hanging()

    def wait_ready(self, timeout_ms: int) -> Readiness:
        """Wait up to `timeout_ms` until the metadata is ready; return the readiness."""
        self._wait(lambda: self._follower.readiness.is_ready, timeout_ms)
        return self._follower.readiness

    def metrics(self) -> MetadataMetrics:
        """Return the current counters and positions. Thread-safe."""
        size = self._cache.size()
        found = self._follower.metrics()
        try:
            found = replace(found, newer_records_count=self._cache.newer_records_count())
        except TieredStorageError:
            _log.debug("cannot count the records of a newer version: the cache cannot be read")
        return replace(
            found,
            segments_count=size.entry_counts.get(Table.SEGMENTS, 0),
            rows_count=sum(size.entry_counts.values()),
            disk_bytes=size.disk_bytes,
            block_cache_bytes=size.block_cache_bytes,
            write_buffer_bytes=size.write_buffer_bytes,
        )

    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        self._assignment.add((*leaders, *followers))

    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._assignment.remove(partitions)

    def follow_topics(self, topic_ids: Iterable[UUID]) -> None:
        self._assignment.set_unhosted_topics(any_left=any(True for _ in topic_ids))

    def publish(self, event: Event) -> PublishResult:
        partition = event_partition(event, self._partition_count())
        self._catching_up(partition)
        family = family_of(event)
        family.require_room(event, self._cache.partition_state, self.broker_time_ms())
        record = encode(event)
        event_id = event.event_id.bytes

        def was_read() -> bool:
            return self._progress.result(event_id) is not None

        self._progress.expect(event_id)
        try:
            written = self._writes.write(partition, record.key, record.value, was_read)
            self._wait_applied(was_read, self._settings.consume_wait_ms)
            result = self._progress.result(event_id)
        finally:
            self._progress.forget(event_id)
        if result is None:
            raise RetriableError(
                "cannot confirm the event: it was written, but not read back in time",
                written=written,
            )
        if result.accepted and written is not None:
            self._remove_superseded(event, written)
        return result

    def write_tombstones(self, segment_id: RemoteLogSegmentId) -> None:
        partition = self._writable(segment_id.topic_id_partition)
        entry = self._cache.segment_entry(segment_id)
        if entry is None:
            return
        if entry.state not in (None, SegmentState.DELETE_SEGMENT_FINISHED):
            raise RetriableError(
                "cannot write tombstones: the segment is not yet deleted", segment=segment_id
            )
        last_ms = max(entry.changed_ms, entry.copy_deadline_ms)
        if entry.state and self.broker_time_ms() < last_ms + self._settings.tombstone_grace_ms:
            raise RetriableError(
                "cannot write tombstones: late records of the segment may still arrive",
                segment=segment_id,
            )
        # Lists omit segments for which an earlier call wrote only some of the tombstones.
        purged = dict(self._cache.partly_tombstoned(segment_id.topic_id_partition))
        purged[segment_subject(segment_id)] = entry
        # These records cannot be found once the segment is unknown.
        ending = [
            key
            for family in PARTITION_FAMILIES
            for key in family.keys_ending_with(segment_id, self._cache)
        ]
        for key in (*ending, *segment_keys(purged)):
            self._writes.publish(partition, key.to_bytes(), None)
        left = len(purged) - 1
        _log.info(LogLine("wrote a segment's tombstones", segment_id=segment_id, left_before=left))

    def write_partition_tombstones(self, topic_id_partition: TopicIdPartition) -> None:
        partition = self._writable(topic_id_partition)
        if self._cache.partition_state(topic_id_partition).deletion is not _PARTITION_DELETED:
            return
        left = {}
        for subject, entry in self._cache.entries(topic_id_partition):
            if entry.state is not None:
                raise RetriableError(
                    "cannot write tombstones: segments of the partition are still stored",
                    partition=topic_id_partition,
                )
            left[subject] = entry
        keys = list(segment_keys(left))
        keys += [
            key
            for family in PARTITION_FAMILIES
            for key in self._cache.superseded_keys(topic_id_partition, family.kind, _ALL)
        ]
        for key in keys:
            self._writes.publish(partition, key.to_bytes(), None)

    def write_topic_tombstones(self, topic_id: UUID) -> None:
        self._partition_count()
        for family in TOPIC_FAMILIES:
            if self._cache.cluster_value(family, topic_id.bytes) is not None:
                key = RecordKey(kind=family.kind, subject=topic_id.bytes)
                self._writes.publish(CLUSTER_PARTITION, key.to_bytes(), None)
        _log.info(LogLine("wrote a topic's tombstones", topic_id=topic_id))

    def remove_record(self, key: RecordKey, *, waits: bool = False) -> None:
        if not family_of_kind(key.kind).reuses_keys:
            raise ValueError(
                f"cannot remove the record: only a record's owner removes {key.kind.name}"
            )
        partition, count = CLUSTER_PARTITION, self._partition_count()
        if key.kind not in CLUSTER_KINDS:
            partition = subject_partition(key.subject, count)
            self._catching_up(partition)
        written = self._writes.publish(partition, key.to_bytes(), None)
        if waits and not self._read_past(written):
            raise RetriableError(
                "cannot confirm the removal: its tombstone was written, but not read back in time"
            )

    def those_caught_up(
        self, partitions: Iterable[TopicIdPartition], *, timeout_ms: int | None = None
    ) -> frozenset[TopicIdPartition]:
        try:
            followed = self._followed(partitions)
        except RetriableError as error:
            _log_no_end(error)
            return frozenset()
        read = self._those_read(frozenset(followed.values()), timeout_ms)
        return frozenset(tip for tip, partition in followed.items() if partition in read)

    def is_cluster_current(self, *, timeout_ms: int | None = None) -> bool:
        return bool(self._those_read(frozenset({CLUSTER_PARTITION}), timeout_ms))

    def _those_read(self, partitions: frozenset[int], timeout_ms: int | None) -> frozenset[int]:
        """Return the metadata partitions that are read to their present end, after one wait."""
        if timeout_ms is None:
            timeout_ms = self._settings.consume_wait_ms
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        try:
            ends = self._ends_of(partitions, timeout_ms)
        except RetriableError as error:
            _log_no_end(error)
            return frozenset()

        def has_reached_end(partition: int) -> bool:
            end = {partition: ends[partition]}
            return partition in self._follower.caught_up and self._progress.has_reached(end)

        left_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
        self._wait_applied(lambda: all(map(has_reached_end, partitions)), left_ms)
        return frozenset(filter(has_reached_end, partitions))

    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        # This raises at once unless all metadata is followed.
        super().partitions_of(topic_id, topic)
        every = frozenset(range(self._partition_count()))
        ends = self._ends_of(every, _WHOLE_WAIT_MS)
        if not self._wait_applied(lambda: self._progress.has_reached(ends), _WHOLE_WAIT_MS):
            raise RetriableError(
                "cannot list the topic's partitions: not all metadata was applied in time",
                topic=topic,
            )
        return super().partitions_of(topic_id, topic)

    def broker_time_ms(self) -> int:
        return self._progress.broker_time_ms

    def cluster_time_ms(self) -> int:
        read = self._progress.positions.get(CLUSTER_PARTITION)
        return 0 if read is None else read.append_time_ms

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._thread.request_stop()
        self._progress.notify()
        self._thread.join(_CLOSE_TIMEOUT_S)
        self._ends.close()
        self._topic.close()
        self._cache.close()

    def _partition_count(self) -> int:
        """Return the number of metadata partitions.

        Raises RetriableError until the metadata is ready, so that nothing is written before.
        """
        readiness, identity = self._follower.readiness, self._follower.identity
        if not readiness.is_ready or identity is None:
            raise RetriableError(
                "cannot use the metadata: it is not ready", reason=readiness.reason
            )
        return identity.partition_count

    def _followed(self, partitions: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, int]:
        """Return the metadata partition of each partition whose metadata is followed here."""
        count = self._partition_count()
        wanted = self._assignment.wanted(count, self._progress.positions)
        followed = {tip: metadata_partition(tip, count) for tip in partitions}
        return {tip: partition for tip, partition in followed.items() if partition in wanted}

    def _ends_of(self, partitions: frozenset[int], timeout_ms: int) -> Mapping[int, int]:
        """Return the topic's end offsets; after `start`, concurrent callers share requests."""
        if not partitions:
            return {}
        if not self._thread.is_started:
            return self._topic.end_offsets(sorted(partitions))
        return self._ends.of(partitions, timeout_ms)

    def _writable(self, topic_id_partition: TopicIdPartition) -> int:
        """Return the metadata partition to write to.

        Raises RetriableError if that partition is not caught up.
        """
        partition = metadata_partition(topic_id_partition, self._partition_count())
        self._catching_up(partition)
        return partition

    def _remove_superseded(self, event: Event, written: PublishedPosition) -> None:
        """Write tombstones for records that the accepted event supersedes, and for expired ones.

        Removes superseded records only below the event's offset in the metadata topic: a record
        after the event is newer, and must stay.
        """
        family = family_of(event)
        partition = family.partition_of(event)
        kinds = family.superseded_kinds(event, self._cache.partition_state)
        if partition is None or kinds is None:
            return
        keys = [
            key
            for kind in kinds
            for key in self._cache.superseded_keys(partition, kind, written.offset)
        ]
        state, now_ms = self._cache.partition_state(partition), self.broker_time_ms()
        subject = partition_subject(partition)
        keys += [
            RecordKey(kind=each.kind, subject=subject, event_id=expired_id.bytes)
            for each in PARTITION_FAMILIES
            for expired_id in each.expired_ids(state, now_ms)
        ]
        try:
            for key in keys:
                self._writes.publish(written.partition, key.to_bytes(), None)
        except RetriableError as error:
            _log.info(LogLine("cannot remove superseded records: they stay for now", error=error))

    def _read_past(self, written: PublishedPosition) -> bool:
        end = {written.partition: written.offset + 1}
        return self._wait_applied(
            lambda: self._progress.has_reached(end), self._settings.consume_wait_ms
        )

    def _wait_applied(self, predicate: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait for the predicate; False on timeout, or if the metadata is not ready."""
        self._wait(lambda: predicate() or not self._follower.readiness.is_ready, timeout_ms)
        return predicate()

    def _wait(self, predicate: Callable[[], bool], timeout_ms: int) -> bool:
        if self._thread.is_started:
            self._progress.wait(lambda: predicate() or self._thread.is_stopping, timeout_ms)
            return predicate()
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while not predicate():
            if self._clock.monotonic_ms() >= deadline_ms:
                return False
            self._clock.sleep_ms(self._follower.step())
        return True


def _log_no_end(error: RetriableError) -> None:
    _log.info(LogLine("cannot read the end of the metadata topic", error=error))
