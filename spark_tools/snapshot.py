"""What the metadata says of some topics, all of it as of one position of the metadata topic.

Read to the topic's end into memory, and on when it is asked for: nothing changes in between. Read
leases are taken before segments are listed: what is listed then stays in the store until the leases
expire.
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
from rlmm.events.values import READ_LEASE_MAX_MS, ReadLeaseTaken
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.partition_state import PartitionState, ReadLease
from rlmm.partitioner import metadata_partition
from rlmm.positions import TopicIdentity
from rlmm.spi import (
    NewerRecord,
    Readiness,
    SegmentRecord,
)
from rlmm.topic.kafka import KafkaTopic
from rlmm.topic.kafka_admin import KafkaTopicAdmin
from rlmm.topic.kafka_reader import KafkaTopicReader
from rlmm.topic.shape import TopicSettings
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
    """Who reads, and for how long what is read must stay. `duration_ms` 0: no lease is taken.

    A holder has one lease per partition, however often it reads. One that `keeps` what it leased
    before never narrows or shortens it; another one leases only what it reads next.
    """

    holder: str
    duration_ms: int
    keeps: bool = True

    @property
    def lease_id(self) -> UUID:
        return uuid5(_LEASES, self.holder)


class MetadataSnapshot:
    """An open metadata topic, read up to where it ended. One thread's."""

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
        """The next offset of each metadata partition: what the answers are consistent with."""
        return self._manager.metrics().positions

    def catch_up(self, partitions: Collection[TopicIdPartition]) -> None:
        """Read on to the end of now of what concerns these.

        RetriableError if not in time, or if the topic was replaced by another meanwhile.
        """
        reached = self._manager.those_caught_up(partitions)
        if missing := set(partitions) - reached:
            raise RetriableError(
                "the metadata topic cannot be read to its end", missing=min(missing)
            )
        if self._find_topic() != self.identity:
            raise RetriableError("the metadata topic was replaced", was=self.identity)

    def catch_up_all(self) -> None:
        """The same for whatever it says, of partitions that nobody knows yet too."""
        self.catch_up(_one_for_each(self.identity.partition_count))

    def every_segment(self) -> Iterator[SegmentRecord]:
        """All segments in any state, ascending by topic id and partition; one point in time."""
        return self._cache.every_segment()

    def partition_state(self, partition: TopicIdPartition) -> PartitionState:
        """What is known of a partition as a whole."""
        return self._manager.partition_state(partition)

    def active_leases(self, partition: TopicIdPartition) -> tuple[ReadLease, ...]:
        """Who reads of it what must stay; expired by the brokers' clock as far as it was read."""
        return self.partition_state(partition).active_leases(self._manager.broker_time_ms())

    def unread_records(self) -> Mapping[str, int]:
        """How many records say what is not known here, by reason; empty if all were read.

        Whoever read them: the process whose cache this began with, or this one.
        """
        unread = {
            "newer_version": self._cache.newer_records_count(),
            "unreadable": self._cache.unreadable_records_count(),
        }
        return {reason: count for reason, count in unread.items() if count}

    def segment_states(self, subjects: Iterable[bytes]) -> dict[bytes, SegmentState | None]:
        """The states of segments by their subjects (rlmm/record_keys.py), None for unknown ones.

        Whole only right after the partitions of all of them were caught up with.
        """
        return self._cache.segment_states(subjects)

    def objects_named(self, subjects: Iterable[bytes]) -> Iterator[tuple[bytes, NamedObjects]]:
        """By their subjects what segments name; nothing of unknown ones. Whole as the states."""
        return self._cache.objects_named(subjects)

    def knowledge(self, partition: TopicIdPartition) -> PartitionKnowledge:
        """All that it says of a partition. Memory and work: the partition's segments."""
        every = self._manager.list_remote_log_segments(partition, states=tuple(SegmentState))
        return PartitionKnowledge.of(self.partition_state(partition), every)

    def newer_record(self, partition: TopicIdPartition) -> NewerRecord | None:
        """What only newer rules can fold of a partition: then nothing may be deleted."""
        return self._manager.newer_record(partition)

    def take_lease(
        self, partition: TopicIdPartition, offsets: OffsetRange, terms: LeaseTerms
    ) -> ReadLeaseTaken | None:
        """Have what is stored of `offsets` stay for a while; None if there is nothing to lease.

        RetriableError if it cannot.
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
            raise RetriableError("no read lease", partition=partition, reason=result.refusal)
        return taken

    def partition(self, partition: TopicIdPartition) -> StoredPartition:
        """What is stored of a partition and how much of that may be read."""
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
    """Read the metadata topic up to its end of now.

    Into `store`, which is closed in the end: what it holds of this topic already is not read again.
    InvalidConfigError if there is no such topic or the cluster cannot be reached in time.
    """
    shape = _found_shape(connection, timeout_ms)
    topic = KafkaTopic(connection.client, shape)
    admin = KafkaTopicAdmin(connection.client, shape, request_timeout_ms=timeout_ms)
    cache = MetadataCache(store or MemoryStore())
    manager = TopicBasedRemoteLogMetadataManager(
        topic,
        cache,
        SystemClock(),
        ManagerSettings(consume_wait_ms=timeout_ms),
    )
    try:
        snapshot = MetadataSnapshot(manager, cache, partial(admin.ensure, create=False))
        readiness = wait_while_reading(manager, timeout_ms)
        if not readiness.ready:
            raise InvalidConfigError(
                "the metadata topic cannot be read in time",
                topic=connection.metadata_topic,
                timeout_ms=timeout_ms,
                reason=readiness.reason,
            )
        yield snapshot
    finally:
        manager.close()


def wait_while_reading(manager: TopicBasedRemoteLogMetadataManager, timeout_ms: int) -> Readiness:
    """Until ready, or until so long nothing has come that is waited for.

    What is written meanwhile is not.
    """
    missing = None
    while True:
        readiness = manager.wait_ready(timeout_ms)
        now = manager.metrics().missing_events_count
        if readiness.ready or not now or (missing is not None and now >= missing):
            return readiness
        missing = now


def _one_for_each(partition_count: int) -> list[TopicIdPartition]:
    """A partition, of no topic, for each metadata partition that might tell of it."""
    found: dict[int, TopicIdPartition] = {}
    for number in count():
        substitute = TopicIdPartition(topic_id=UUID(int=0), topic="-", partition=number)
        found.setdefault(metadata_partition(substitute, partition_count), substitute)
        if len(found) == partition_count:
            break
    return list(found.values())


def _found_shape(connection: ClusterConnection, timeout_ms: int) -> TopicSettings:
    """The topic's shape as it is: whether that is right is for those who write it to check."""
    name = connection.metadata_topic
    reader = KafkaTopicReader(connection.client, name)
    try:
        partition_count = len(reader.partitions(timeout_ms))
    except (NotFoundError, RetriableError) as error:
        raise InvalidConfigError(
            "the metadata topic cannot be read",
            topic=name,
            servers=connection.client.get("bootstrap.servers"),
            reason=error,
        ) from error
    finally:
        reader.close()
    return TopicSettings(name=name, partition_count=partition_count, replication_factor=1)
