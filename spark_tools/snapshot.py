"""Provides the metadata of topics as of fixed positions of the metadata topic.

A snapshot reads the metadata topic to its end. Afterwards it reads only in `catch_up` and
`take_lease`, so answers do not change between these calls. Jobs take read leases before they list
segments; the listed segments stay in the store until the leases expire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from uuid import UUID, uuid4, uuid5

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.ordered_store import OrderedStore
from rlmm.cache.values import NamedObjects
from rlmm.events.read_lease import READ_LEASE_MAX_MS, ReadLeaseTaken
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rlmm.positions import TopicIdentity
from rlmm.spi import (
    NewerRecord,
    Readiness,
    SegmentRecord,
)
from rlmm.state.partition_state import PartitionState, ReadLease
from rlmm.topic.event_topic import EventTopic
from rlmm.topic.kafka import KafkaTopic
from rlmm.topic.kafka_admin import KafkaTopicAdmin
from rlmm.topic.kafka_reader import KafkaTopicReader
from rlmm.topic.shape import TopicSettings
from rsm.plugins.calls import ignore_failure
from rsm.plugins.plugin import Plugin
from rsm.plugins.subclass import start_subclass
from rsm.secret_keys import without_credentials
from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from rsm.system_clock import SystemClock
from spark_tools.connection import ClusterConnection
from spark_tools.orphan_proof import PartitionKnowledge
from spark_tools.stored_partition import StoredPartition

_LEASES = UUID("7b9c2b3e-5e0c-4b52-9a55-0f6f4f6b1c3d")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """The reader's name, and how long its segments must stay.

    If `duration_ms` is 0, the reader takes no lease. A holder has at most one lease per
    partition. If `keeps` is true, a new lease also covers the offsets of the previous one and does
    not expire earlier. Otherwise, it covers only the newest range.
    """

    holder: str
    duration_ms: int
    keeps: bool = True

    @property
    def lease_id(self) -> UUID:
        return uuid5(_LEASES, self.holder)


class MetadataSnapshot:
    """The metadata as of the last call that read the metadata topic. Not thread-safe."""

    def __init__(
        self,
        manager: TopicBasedRemoteLogMetadataManager,
        cache: MetadataCache,
        find_topic: Callable[[], TopicIdentity],
    ) -> None:
        self._manager = manager
        self._cache = cache
        self._find_topic = find_topic
        self.identity = find_topic()

    def positions(self) -> Mapping[int, int]:
        """Return the next offset to read of each metadata partition.

        All answers hold as of these offsets.
        """
        return self._manager.metrics().positions

    def catch_up(self, partitions: Collection[TopicIdPartition]) -> None:
        """Read the metadata of these partitions to the current end.

        Raises RetriableError on a timeout, or if another topic replaced the metadata topic.
        """
        reached = self._manager.those_caught_up(partitions)
        if missing := set(partitions) - reached:
            raise RetriableError(
                "cannot read the metadata topic to its end in time", partition=min(missing)
            )
        if self._find_topic() != self.identity:
            raise RetriableError(
                "cannot use the metadata topic: another topic replaced it", was=self.identity
            )

    def catch_up_all(self) -> None:
        """Read all metadata partitions to their current ends."""
        self.catch_up(_one_for_each(self.identity.partition_count))

    def every_segment(self) -> Iterator[SegmentRecord]:
        """Yield a snapshot of all segments in any state, ascending by topic id and partition."""
        return self._cache.every_segment()

    def partition_state(self, partition: TopicIdPartition) -> PartitionState:
        """Return the state of a partition."""
        return self._manager.partition_state(partition)

    def active_leases(self, partition: TopicIdPartition) -> tuple[ReadLease, ...]:
        """Return the partition's read leases that have not expired by the brokers' clock."""
        return self.partition_state(partition).active_leases(self._manager.broker_time_ms())

    def unread_records(self) -> Mapping[str, int]:
        """Return the number of records that this version cannot read, by reason; empty if none.

        If the cache was copied from another process, the number includes the records that the other
        process could not read.
        """
        unread = {
            "newer_version": self._cache.newer_records_count(),
            "unreadable": self._cache.unreadable_records_count(),
        }
        return {reason: count for reason, count in unread.items() if count}

    def segment_states(self, subjects: Iterable[bytes]) -> dict[bytes, SegmentState | None]:
        """Return the states of segments by subject (rlmm/record_keys.py); None if unknown.

        The answer is complete only directly after a `catch_up` of all their partitions.
        """
        return self._cache.segment_states(subjects)

    def objects_named(self, subjects: Iterable[bytes]) -> Iterator[tuple[bytes, NamedObjects]]:
        """Yield subject and objects of each known segment; as complete as `segment_states`."""
        return self._cache.objects_named(subjects)

    def knowledge(self, partition: TopicIdPartition) -> PartitionKnowledge:
        """Return all metadata of a partition. Memory and time grow with the number of segments."""
        every = self._manager.list_remote_log_segments(partition, states=tuple(SegmentState))
        return PartitionKnowledge.of(self.partition_state(partition), every)

    def newer_record(self, partition: TopicIdPartition) -> NewerRecord | None:
        """Return a record that this version's fold cannot read; None if there is none.

        **Data loss:** a deletion can remove data that this record protects. Delete nothing of the
        partition while there is such a record.
        """
        return self._manager.newer_record(partition)

    def take_lease(
        self, partition: TopicIdPartition, offsets: OffsetRange, terms: LeaseTerms
    ) -> ReadLeaseTaken | None:
        """Lease the offsets. Returns None if there are none, or if the terms' duration is 0.

        Raises RetriableError if the lease is refused or cannot be confirmed.
        """
        if not terms.duration_ms or not len(offsets):
            return None
        leased = self._manager.partition_state(partition).read_leases
        own = [lease for lease in leased if terms.keeps and lease.lease_id == terms.lease_id]
        now_ms = self._manager.broker_time_ms()
        taken = ReadLeaseTaken(
            event_id=uuid4(),
            lease_id=terms.lease_id,
            topic_id_partition=partition,
            offsets=OffsetRange(
                start_offset=min(o.start_offset for o in (offsets, *(e.offsets for e in own))),
                end_offset=max(o.end_offset for o in (offsets, *(e.offsets for e in own))),
            ),
            duration_ms=min(
                max(terms.duration_ms, *(e.expires_ms - now_ms for e in own), 1),
                READ_LEASE_MAX_MS,
            ),
            holder=terms.holder,
        )
        result = self._manager.publish(taken)
        if not result.accepted:
            raise RetriableError(
                "cannot take a read lease", partition=partition, reason=result.refusal
            )
        return taken

    def partition(self, partition: TopicIdPartition) -> StoredPartition:
        """Return the state and the finished segments of a partition."""
        records = self._manager.list_remote_log_segments(
            partition, states=(SegmentState.COPY_SEGMENT_FINISHED,)
        )
        return StoredPartition(
            topic_id_partition=partition,
            state=self._manager.partition_state(partition),
            segments=tuple(record.metadata for record in records),
        )


@contextmanager
def open_snapshot(
    connection: ClusterConnection, *, timeout_ms: int, store: OrderedStore | None = None
) -> Iterator[MetadataSnapshot]:
    """Open a snapshot as of the metadata topic's current end.

    Records that `store` already contains are not read again. Leaving the block closes the store.
    Raises InvalidConfigError if there is no such topic or the cluster does not answer in time.
    """
    shape = _found_shape(connection, timeout_ms)
    topic = KafkaTopic(connection.client, shape)
    admin = KafkaTopicAdmin(connection.client, shape, request_timeout_ms=timeout_ms)
    cache = MetadataCache(store or MemoryStore())
    manager = _open_manager(
        connection.metadata_plugin, topic, cache, ManagerSettings(consume_wait_ms=timeout_ms)
    )
    try:
        snapshot = MetadataSnapshot(manager, cache, partial(admin.ensure, create=False))
        readiness = wait_while_reading(manager, timeout_ms)
        if not readiness.is_ready:
            raise InvalidConfigError(
                "cannot read the metadata topic in time",
                topic=connection.metadata_topic,
                timeout_ms=timeout_ms,
                reason=readiness.reason,
            )
        yield snapshot
    finally:
        manager.close()


def _open_manager(
    plugin: Plugin | None, topic: EventTopic, cache: MetadataCache, settings: ManagerSettings
) -> TopicBasedRemoteLogMetadataManager:
    """Open the plug-in's metadata manager; the built-in one if there is no plug-in.

    Raises InvalidConfigError if the plug-in is invalid.
    """
    built_in, clock = TopicBasedRemoteLogMetadataManager, SystemClock()
    if plugin is None:
        return built_in(topic, cache, clock, settings)
    return start_subclass(plugin, built_in, ignore_failure, topic, cache, clock, settings)


def wait_while_reading(manager: TopicBasedRemoteLogMetadataManager, timeout_ms: int) -> Readiness:
    """Wait until the metadata is ready, or until `timeout_ms` passes without progress.

    Progress means that fewer events are missing. Events written after the start do not count.
    """
    missing = None
    while True:
        readiness = manager.wait_ready(timeout_ms)
        now = manager.metrics().missing_events_count
        if readiness.is_ready or not now or (missing is not None and now >= missing):
            return readiness
        missing = now


def _one_for_each(partition_count: int) -> list[TopicIdPartition]:
    """Return, for each metadata partition, a fictitious topic partition that maps to it."""
    found: dict[int, TopicIdPartition] = {}
    for number in count():
        substitute = TopicIdPartition(topic_id=UUID(int=0), topic="-", partition=number)
        found.setdefault(metadata_partition(substitute, partition_count), substitute)
        if len(found) == partition_count:
            break
    return list(found.values())


def _found_shape(connection: ClusterConnection, timeout_ms: int) -> TopicSettings:
    """Return the topic's name and its actual partition count; readers need no other setting."""
    name = connection.metadata_topic
    reader = KafkaTopicReader(connection.client, name)
    try:
        partition_count = len(reader.partitions(timeout_ms))
    except (NotFoundError, RetriableError) as error:
        raise InvalidConfigError(
            "cannot read the metadata topic",
            topic=name,
            servers=without_credentials(connection.client.get("bootstrap.servers", "")),
            reason=error,
        ) from error
    finally:
        reader.close()
    return TopicSettings(name=name, partition_count=partition_count, replication_factor=1)
