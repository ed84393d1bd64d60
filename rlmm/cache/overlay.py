"""Collects one batch of changes to the cache, which can be read before they are written.

If a segment changes several times within a batch, only its last state and the index rows of that
state are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rlmm.cache import values
from rlmm.cache.keys import (
    MAX_OFFSET,
    UNREADABLE_PREFIX,
    EpochBases,
    deletion_key,
    newer_prefix,
    offset_key,
    pack_epoch_bases,
    pack_number,
    position_key,
    record_row,
    subject_key,
    unpack_epoch_bases,
    unpack_number,
)
from rlmm.cache.ordered_store import OrderedStore, StoreBatch, Table
from rlmm.cache.partition_changes import PartitionChanges
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, RecordKey, record_scope
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rlmm.state.segment_entry import SegmentEntry
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import SegmentState

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED


class Overlay:
    """Implements FoldState over the database. Not thread-safe.

    Memory: the segments and partitions of one batch.
    """

    def __init__(self, store: OrderedStore, changes: PartitionChanges) -> None:
        """Use `changes` to report the partitions that each commit changes."""
        self._store = store
        self._changes = changes
        self._stored: dict[bytes, SegmentEntry | None] = {}
        self._segments: dict[bytes, SegmentEntry | None] = {}
        self._partitions: dict[bytes, PartitionState] = {}
        self._changed_partitions: set[bytes] = set()
        self._touched: set[bytes] = set()
        self._deletions: dict[bytes, RemotePartitionDeleteState | None] = {}
        self._others: dict[tuple[Table, bytes], bytes | None] = {}

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        if subject in self._segments:
            return self._segments[subject]
        entry = stored_entry(self._store.get, subject)
        self._segments[subject] = self._stored[subject] = entry
        return entry

    def put_segment(self, subject: bytes, entry: SegmentEntry | None) -> None:
        """Replace a segment's entry; the caller must have called `segment_entry` for it."""
        self._segments[subject] = entry

    def partition_state(self, subject: bytes) -> PartitionState:
        state = self._partitions.get(subject)
        if state is None:
            data = self._store.get(Table.PARTITIONS, subject)
            state = PartitionState() if data is None else values.partition_from_bytes(data)
            self._partitions[subject] = state
        return state

    def put_partition(self, subject: bytes, state: PartitionState) -> None:
        self._partitions[subject] = state
        self._changed_partitions.add(subject)
        self._touched.add(subject)

    def partition_deletion(self, subject: bytes) -> RemotePartitionDeleteState | None:
        # The fold needs the deletion state for each new segment. In a separate row, this state is
        # cheap to read while the partition is not deleted.
        if subject not in self._deletions:
            data = self._store.get(Table.PARTITIONS, deletion_key(subject))
            self._deletions[subject] = values.deletion_from_bytes(data)
        return self._deletions[subject]

    def put_partition_deletion(self, subject: bytes, deletion: RemotePartitionDeleteState) -> None:
        self._deletions[subject] = deletion
        self._touched.add(subject)
        value = values.deletion_to_bytes(deletion)
        self._others[Table.PARTITIONS, deletion_key(subject)] = value

    def put_unread_record(self, record: TopicRecord, needs_fold_version: int) -> None:
        value = values.newer_record_to_bytes(needs_fold_version, record)
        self._put_notes(record.key, value, is_newer=needs_fold_version > 0)

    def remove_unread_record(self, key: bytes) -> None:
        self._put_notes(key, None, is_newer=False)

    def _put_notes(self, key: bytes, value: bytes | None, *, is_newer: bool) -> None:
        newer_row = newer_prefix(record_scope(key)) + key
        self._others[Table.CLUSTER, newer_row] = value if is_newer else None
        self._others[Table.CLUSTER, UNREADABLE_PREFIX + key] = None if is_newer else value

    def put_record_key(self, key: RecordKey, offset: int | None, content: bytes = b"") -> None:
        value = None if offset is None else pack_number(offset) + content
        self._others[Table.RECORD_KEYS, record_row(key)] = value

    def put_cluster_row(self, key: bytes, row: bytes | None) -> None:
        self._others[Table.CLUSTER, key] = row

    def commit(self, positions: Mapping[int, ReadPosition]) -> None:
        """Write all changes and the new positions in the topic as one batch."""
        batch = self._store.batch()
        segments = _SegmentWrites(batch)
        for subject in sorted(self._segments):  # RocksDB inserts ascending keys faster
            before, entry = self._stored[subject], self._segments[subject]
            if entry is not before:
                segments.put(subject, before, entry)
        self._widen_bounds(batch, segments)
        for subject in self._changed_partitions:
            value = values.partition_to_bytes(self._partitions[subject])
            self._others[Table.PARTITIONS, subject] = value or None
        for (table, key), other in self._others.items():
            if other is None:
                batch.delete(table, key)
            else:
                batch.put(table, key, other)
        for partition, position in positions.items():
            key = position_key(partition)
            batch.put(Table.CHECKPOINT, key, values.position_to_bytes(position))
        self._store.write(batch)
        self._changes.changed(self._touched | segments.erased_of | segments.spans.keys())

    def _widen_bounds(self, batch: StoreBatch, segments: _SegmentWrites) -> None:
        for partition, span in segments.spans.items():
            known = self._store.get(Table.BOUNDS, partition)
            if known is None or unpack_number(known) < span:
                batch.put(Table.BOUNDS, partition, pack_number(span))
        for key, least_offset in segments.least_bases.items():
            known = self._store.get(Table.BOUNDS, key)
            new = EpochBases(least_offset, segments.greatest_bases[key])
            bases = new if known is None else new.joined(unpack_epoch_bases(known))
            if (value := pack_epoch_bases(bases)) != known:
                batch.put(Table.BOUNDS, key, value)


class _SegmentWrites:
    """Adds segments and their index rows to a batch, and collects the segments' bounds."""

    def __init__(self, batch: StoreBatch) -> None:
        self._batch = batch
        self.erased_of: set[bytes] = set()
        self.spans: dict[bytes, int] = {}
        self.least_bases: dict[bytes, int] = {}
        self.greatest_bases: dict[bytes, int] = {}

    def put(self, subject: bytes, before: SegmentEntry | None, after: SegmentEntry | None) -> None:
        """Replace a segment's rows; remove them if `after` is None."""
        batch = self._batch
        partition, segment_id = subject[:PARTITION_SUBJECT_BYTES], subject[PARTITION_SUBJECT_BYTES:]
        new_key = None
        if after is not None:
            new_key = offset_key(partition, after.base_offset, segment_id)
        if before is not None:
            old_key = offset_key(partition, before.base_offset, segment_id)
            if old_key != new_key:
                batch.delete(Table.SEGMENTS, old_key)
            if _is_unfinished(before):
                batch.delete(Table.UNFINISHED_BY_OFFSET, old_key)
        if after is None or new_key is None:
            batch.delete(Table.SEGMENT_OFFSETS, subject)
            self.erased_of.add(partition)
            return
        batch.put(Table.SEGMENTS, new_key, after.to_bytes())
        if before is None or before.base_offset != after.base_offset:
            batch.put(Table.SEGMENT_OFFSETS, subject, pack_number(after.base_offset))
        if _is_unfinished(after):
            batch.put(Table.UNFINISHED_BY_OFFSET, new_key, pack_number(after.end_offset))
        self._widen(partition, after)

    def _widen(self, partition: bytes, entry: SegmentEntry) -> None:
        base_offset = entry.base_offset
        span = entry.end_offset - base_offset
        if self.spans.get(partition, -1) < span:
            self.spans[partition] = span
        for epoch in entry.covered_epochs():
            key = partition + epoch
            if self.least_bases.get(key, MAX_OFFSET) >= base_offset:
                self.least_bases[key] = base_offset
            if self.greatest_bases.get(key, -1) < base_offset:
                self.greatest_bases[key] = base_offset


def stored_entry(
    get: Callable[[Table, bytes], bytes | None], subject: bytes
) -> SegmentEntry | None:
    """Return a segment's entry in the database. All calls of `get` must see the same batches."""
    data = stored_data(get, subject)
    return None if data is None else SegmentEntry.from_bytes(data)


def stored_data(get: Callable[[Table, bytes], bytes | None], subject: bytes) -> bytes | None:
    """Return the bytes of `stored_entry`."""
    base_offset = get(Table.SEGMENT_OFFSETS, subject)
    if base_offset is None:
        return None
    data = get(Table.SEGMENTS, subject_key(subject, base_offset))
    if data is None:
        raise CorruptError("the cache is damaged: a segment has a base offset but no entry")
    return data


def _is_unfinished(entry: SegmentEntry) -> bool:
    return entry.state is not None and entry.state is not _FINISHED
