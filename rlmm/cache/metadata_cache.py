"""Answers typed queries of the folded state, which an OrderedStore contains.

The cache records its topic and the position to which each partition was read. It does not access
the topic; the follower decides whether the cached state may be used (rlmm/follow/continuation.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from rlmm.cache import values
from rlmm.cache.keys import (
    IDENTITY,
    NEWER_PREFIX,
    POSITION_END,
    POSITION_PREFIX,
    UNREADABLE_PREFIX,
    after,
    deletion_key,
    newer_prefix,
    position_key_partition,
    record_content,
    record_key_prefix,
    record_offset,
    record_row,
)
from rlmm.cache.ordered_store import OrderedStore, StoreReader, StoreSize, Table
from rlmm.cache.overlay import Overlay, stored_data, stored_entry
from rlmm.cache.partition_changes import PartitionChanges
from rlmm.cache.partition_data import drop_partitions, partition_numbers
from rlmm.cache.segment_view import SegmentView
from rlmm.cache.values import NamedObjects
from rlmm.events.rows import ClusterRows, KeptRows
from rlmm.positions import ReadPosition, TopicIdentity
from rlmm.record_keys import (
    PARTITION_SUBJECT_BYTES,
    RecordKey,
    RecordKind,
    partition_subject,
    segment_subject,
)
from rlmm.spi import (
    NewerRecord,
    SegmentRecord,
)
from rlmm.state.partition_state import PartitionState
from rlmm.state.segment_entry import SegmentEntry, entry_state, entry_value
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

V = TypeVar("V")

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED
_AFTER_PARTITIONS = b"\xff" * (PARTITION_SUBJECT_BYTES + 1)
_LISTED_STATES = frozenset(SegmentState) - {SegmentState.DELETE_SEGMENT_FINISHED}


class MetadataCache:
    """Represents the folded metadata. Reads are thread-safe.

    All changes must be made by one thread, including those of overlays. Methods raise CorruptError
    if the database is damaged, and RetriableError if its disk fails.
    """

    def __init__(self, store: OrderedStore) -> None:
        self._store = store
        self.changes = PartitionChanges()

    def identity(self) -> TopicIdentity | None:
        """Return the topic of the cached state; None if the cache is new or has another version."""
        value = self._store.get(Table.CHECKPOINT, IDENTITY)
        return None if value is None else values.identity_from_bytes(value)

    def positions(self) -> Mapping[int, ReadPosition]:
        """Return the position of each metadata partition; omit partitions that were never read."""
        with self._store.read(Table.CHECKPOINT) as reader:
            rows = reader.ascending(Table.CHECKPOINT, POSITION_PREFIX, POSITION_END)
            return {
                position_key_partition(key): values.position_from_bytes(value)
                for key, value in rows
            }

    def reset(self, identity: TopicIdentity) -> None:
        """Empty the cache and assign it to a topic, atomically."""
        batch = self._store.batch()
        batch.clear_tables()
        batch.put(Table.CHECKPOINT, IDENTITY, values.identity_to_bytes(identity))
        self._store.write(batch)
        self.changes.all_changed()

    def drop(self, metadata_partitions: Collection[int], partition_count: int) -> None:
        """Remove the data of metadata partitions, as if they had never been read; atomic."""
        drop_partitions(self._store, metadata_partitions, partition_count)
        self.changes.all_changed()

    def set_aside(self, stored: TopicIdentity) -> str:
        """Replace the cache with an empty one. Returns the old data's path; "" if not kept."""
        kept = self._store.set_aside(stored.topic_id)
        self.changes.all_changed()
        return kept

    def size(self) -> StoreSize:
        """Return the cache's disk use, memory use and row counts."""
        return self._store.size()

    def failure(self) -> str:
        """Return why the cache is unusable until `recover` succeeds; "" if it is usable."""
        return self._store.failure()

    def recover(self, before_restart: Callable[[], None]) -> None:
        """Open the database again if it failed. Raises RetriableError.

        Keeps written data. If the database is damaged, calls `before_restart` and then replaces the
        database with an empty one.
        """
        if self._store.failure():
            self._store.reopen(before_restart)
            self.changes.all_changed()

    def set_bulk_mode(self, *, enabled: bool) -> None:
        """Optimize the database for many writes if `enabled`, otherwise for queries."""
        self._store.set_bulk_mode(enabled=enabled)

    def overlay(self) -> Overlay:
        """Return a view for folding a batch of records into this cache."""
        return Overlay(self._store, self.changes)

    def segment_entry(self, segment_id: RemoteLogSegmentId) -> SegmentEntry | None:
        """Return a segment's entry, including its records' ids; None if there is no entry."""
        with self._store.read(Table.SEGMENT_OFFSETS, Table.SEGMENTS) as reader:
            return stored_entry(reader.get, segment_subject(segment_id))

    def segment(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        """Return a segment in any state; None if it has no accepted record or was erased."""
        entry = self.segment_entry(segment_id)
        if entry is None or entry.state is None:
            return None
        return values.segment_record(entry)

    def segment_states(self, subjects: Iterable[bytes]) -> dict[bytes, SegmentState | None]:
        """Return each segment's state by subject; it is None where `segment` would return None."""
        with self._store.read(Table.SEGMENT_OFFSETS, Table.SEGMENTS) as reader:
            found = {subject: stored_data(reader.get, subject) for subject in subjects}
        return {
            subject: None if data is None else entry_state(data) for subject, data in found.items()
        }

    def objects_named(self, subjects: Iterable[bytes]) -> Iterator[tuple[bytes, NamedObjects]]:
        """Yield these segments' object names; omit segments for which `segment` returns None."""
        with self._store.read(Table.SEGMENT_OFFSETS, Table.SEGMENTS) as reader:
            for subject in subjects:
                data = stored_data(reader.get, subject)
                if data is not None and entry_state(data) is not None:
                    yield subject, values.objects_named(entry_value(data))

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        """Return the folded state of a partition; an empty state if nothing is known."""
        subject = partition_subject(topic_id_partition)
        data = self._store.get(Table.PARTITIONS, subject)
        state = PartitionState() if data is None else values.partition_from_bytes(data)
        deletion = self._store.get(Table.PARTITIONS, deletion_key(subject))
        if deletion is None:
            return state
        return replace(state, deletion=values.deletion_from_bytes(deletion))

    def newer_record(self, topic_id_partition: TopicIdPartition) -> NewerRecord | None:
        """Return a record about this partition that needs newer rules; None if there is none."""
        subject = partition_subject(topic_id_partition)
        with self._store.read(Table.CLUSTER) as reader:
            for scope in (subject, topic_id_partition.topic_id.bytes, b""):
                prefix = newer_prefix(scope)
                for _, value in reader.ascending(Table.CLUSTER, prefix, after(prefix)):
                    return values.newer_record_from_bytes(value)
        return None

    def newer_records_count(self) -> int:
        """Return how many unfolded records need newer rules."""
        return self._count(NEWER_PREFIX)

    def unreadable_records_count(self) -> int:
        """Return how many unfolded records even newer rules cannot read."""
        return self._count(UNREADABLE_PREFIX)

    def _count(self, prefix: bytes) -> int:
        with self._store.read(Table.CLUSTER) as reader:
            return sum(1 for _ in reader.ascending(Table.CLUSTER, prefix, after(prefix)))

    def lineage(self, topic_id_partition: TopicIdPartition) -> Lineage:
        """Return the lineage of a partition's log; decode nothing else of the state."""
        data = self._store.get(Table.PARTITIONS, partition_subject(topic_id_partition))
        return Lineage() if data is None else values.lineage_from_bytes(data)

    def finished_segment(
        self, topic_id_partition: TopicIdPartition, offset: int, leader_epoch: int | None = None
    ) -> RemoteLogSegmentMetadata | None:
        """Return the finished segment that contains `offset` in `leader_epoch`.

        If `leader_epoch` is None, uses the epoch of `offset` in the log's lineage. Returns None if
        there is no such epoch or segment.
        """
        if leader_epoch is None:
            leader_epoch = self.lineage(topic_id_partition).epoch_for_offset(offset)
        if leader_epoch is None:
            return None
        with self._store.read(Table.SEGMENTS) as reader:
            view = self._view(reader, topic_id_partition)
            value = view.find_finished(leader_epoch, offset)
        return None if value is None else values.metadata_in(value, topic_id_partition)

    def next_transactional_segment(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """Return an epoch's first finished segment from `offset` that has a transaction index."""
        with self._store.read(Table.SEGMENTS) as reader:
            view = self._view(reader, topic_id_partition)
            entry = view.find_transactional(leader_epoch, offset)
        return None if entry is None else values.segment_metadata(entry)

    def earliest_log_offset(self, topic_id_partition: TopicIdPartition) -> int | None:
        """Return the lowest readable offset that is stored in the lineage; None if none is."""
        state = self.partition_state(topic_id_partition)
        first_offset = state.first_readable_offset or 0
        with self._store.read(Table.SEGMENTS) as reader:
            view = self._view(reader, topic_id_partition)
            for part, entry in view.of_lineage(state.lineage, first_offset):
                offset = max(part.start_offset, first_offset)
                if offset < state.lineage.common_end(entry.lineage(), entry.end_offset):
                    return offset
        return None

    def size_bytes(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int | None = None
    ) -> int:
        """Return the total size of the finished segments of an epoch.

        If `leader_epoch` is None, returns that of the segments that begin in the lineage.
        """
        lineage = self.lineage(topic_id_partition)
        with self._store.read(Table.SEGMENTS) as reader:
            view = self._view(reader, topic_id_partition)
            if leader_epoch is None:
                return view.lineage_size_bytes(lineage)
            return sum(entry.size_bytes for entry in view.of_epoch(leader_epoch))

    def highest_end_offset(
        self, topic_id_partition: TopicIdPartition, leader_epoch: int
    ) -> int | None:
        """Return the end offset of an epoch in its finished segments; None if it has none."""
        with self._store.read(Table.SEGMENTS) as reader:
            return self._view(reader, topic_id_partition).highest_end_offset(leader_epoch)

    def segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> list[SegmentRecord]:
        """Return a snapshot of the segments that end above `from_offset`, by ascending base offset.

        If `states` is None, omits only DELETE_SEGMENT_FINISHED. With `leader_epoch`, returns only
        segments with records of that epoch. Does not read finished segments if `states` excludes
        them.
        """
        wanted = _LISTED_STATES if states is None else frozenset(states)
        with self._store.read(Table.SEGMENTS, Table.UNFINISHED_BY_OFFSET) as reader:
            view = self._view(reader, topic_id_partition)
            unfinished = _FINISHED not in wanted
            found = view.from_offset(from_offset, leader_epoch, unfinished=unfinished)
            entries = [entry for entry in found if entry.state in wanted]
        return [values.segment_record(entry) for entry in entries]

    def entries(self, topic_id_partition: TopicIdPartition) -> Iterator[tuple[bytes, SegmentEntry]]:
        """Yield all segments with a record left, even if it was refused, each with its subject."""
        with self._store.read(Table.SEGMENTS) as reader:
            yield from self._view(reader, topic_id_partition).entries()

    def partly_tombstoned(
        self, topic_id_partition: TopicIdPartition
    ) -> Iterator[tuple[bytes, SegmentEntry]]:
        """Yield each segment that a tombstone erased although accepted records are left.

        Also yields each segment's subject. All segments without a state have base offset 0, so this
        reads few rows.
        """
        with self._store.read(Table.SEGMENTS) as reader:
            for subject, entry in self._view(reader, topic_id_partition).entries(1):
                if entry.state is None and entry.event_ids(accepted=True):
                    yield subject, entry

    def every_segment(self) -> Iterator[SegmentRecord]:
        """Yield a snapshot of all segments in any state, ascending by topic id and partition."""
        with self._store.read(Table.SEGMENTS) as reader:
            for _, data in reader.ascending(Table.SEGMENTS, b"", _AFTER_PARTITIONS):
                entry = SegmentEntry.from_bytes(data)
                if entry.state is not None:
                    yield values.segment_record(entry)

    def partitions_of(self, topic_id: UUID, topic: str) -> tuple[TopicIdPartition, ...]:
        """Return the known partitions of a topic id, ascending."""
        numbers = partition_numbers(self._store, topic_id.bytes)
        return tuple(
            TopicIdPartition(topic_id=topic_id, topic=topic, partition=number) for number in numbers
        )

    def superseded_keys(
        self, topic_id_partition: TopicIdPartition, kind: RecordKind, before_offset: int
    ) -> list[RecordKey]:
        """Return a kind's record keys with offsets below `before_offset` in the metadata topic."""
        subject = partition_subject(topic_id_partition)
        prefix = record_key_prefix(subject, kind)
        with self._store.read(Table.RECORD_KEYS) as reader:
            return [
                RecordKey(kind=kind, subject=subject, event_id=key[len(prefix) :])
                for key, value in reader.ascending(Table.RECORD_KEYS, prefix, after(prefix))
                if record_offset(value) < before_offset
            ]

    def kept_values(
        self, rows: KeptRows[V], topic_id_partition: TopicIdPartition, id_prefix: bytes = b""
    ) -> tuple[V, ...]:
        """Return a partition's kept contents by ascending key; event ids begin with `id_prefix`."""
        prefix = record_key_prefix(partition_subject(topic_id_partition), rows.kind) + id_prefix
        with self._store.read(Table.RECORD_KEYS) as reader:
            found = list(reader.ascending(Table.RECORD_KEYS, prefix, after(prefix)))
        contents = (record_content(value) for _, value in found)
        return tuple(rows.from_content(content) for content in contents if content)

    def has_record(self, key: RecordKey) -> bool:
        """Return whether a record with this key is left in the metadata topic."""
        return self._store.get(Table.RECORD_KEYS, record_row(key)) is not None

    def cluster_values(self, rows: ClusterRows[V]) -> tuple[V, ...]:
        """Return the values of all subjects, by ascending subject."""
        prefix = rows.row_prefix
        with self._store.read(Table.CLUSTER) as reader:
            found = list(reader.ascending(Table.CLUSTER, prefix, after(prefix)))
        return tuple(rows.from_row(key[len(prefix) :], row) for key, row in found)

    def cluster_value(self, rows: ClusterRows[V], subject: bytes) -> V | None:
        """Return the value of one subject; None if it has none."""
        row = self._store.get(Table.CLUSTER, rows.row_prefix + subject)
        return None if row is None else rows.from_row(subject, row)

    def close(self) -> None:
        """Close the database; idempotent."""
        self._store.close()

    def _view(self, reader: StoreReader, topic_id_partition: TopicIdPartition) -> SegmentView:
        return SegmentView(self._store, reader, partition_subject(topic_id_partition))
