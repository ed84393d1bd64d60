"""Overlay: the changes of one batch of records over the cache, readable before they are written.

One thread's. A segment that changes several times within a batch is written once, and its index
rows are what its last state asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlmm import codec
from rlmm.cache import values
from rlmm.cache.keys import (
    PAUSE_PREFIX,
    POLICY_PREFIX,
    PROCESS_PREFIX,
    deletion_key,
    epoch_key,
    epoch_prefix,
    newer_prefix,
    offset_key,
    pack_epoch_row,
    pack_number,
    position_key,
    record_key_prefix,
    unpack_number,
)
from rlmm.cache.ordered_store import OrderedStore, StoreBatch, Table
from rlmm.cache.partition_changes import PartitionChanges
from rlmm.events import RemotePartitionDeleteState, TopicPaused, TopicPolicyChanged
from rlmm.positions import ReadPosition
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, RecordKey, record_scope
from rlmm.segment_entry import SegmentEntry
from rlmm.spi import NewerRecord, PartitionState, Registration
from rsm.segment.metadata import SegmentState

_Row = tuple[Table, bytes, bytes]


class Overlay:
    """A FoldState over a store. Memory: the segments and partitions of one batch."""

    def __init__(self, store: OrderedStore, changes: PartitionChanges) -> None:
        """`changes` is told what a commit has changed."""
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
        data = self._store.get(Table.SEGMENTS, subject)
        entry = None if data is None else SegmentEntry.from_bytes(data)
        self._segments[subject] = self._stored[subject] = entry
        return entry

    def put_segment(self, subject: bytes, entry: SegmentEntry | None) -> None:
        """`segment_entry` was asked for it before."""
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
        # Asked once for each new segment: kept apart, a partition that lives costs next to nothing.
        if subject not in self._deletions:
            data = self._store.get(Table.PARTITIONS, deletion_key(subject))
            self._deletions[subject] = values.deletion_from_bytes(data)
        return self._deletions[subject]

    def put_partition_deletion(self, subject: bytes, deletion: RemotePartitionDeleteState) -> None:
        self._deletions[subject] = deletion
        self._touched.add(subject)
        value = values.deletion_to_bytes(deletion)
        self._others[Table.PARTITIONS, deletion_key(subject)] = value

    def put_newer_record(self, key: bytes, record: NewerRecord | None) -> None:
        row = newer_prefix(record_scope(key)) + key
        value = None if record is None else values.newer_record_to_bytes(record)
        self._others[Table.CLUSTER, row] = value

    def put_record_key(self, key: RecordKey, offset: int | None) -> None:
        row = record_key_prefix(key.subject, key.kind) + key.event_id
        self._others[Table.RECORD_KEYS, row] = None if offset is None else pack_number(offset)

    def put_policy(self, topic_id: bytes, event: TopicPolicyChanged | None) -> None:
        value = None if event is None else codec.encode(event).value
        self._others[Table.CLUSTER, POLICY_PREFIX + topic_id] = value

    def put_pause(self, topic_id: bytes, event: TopicPaused | None) -> None:
        value = None if event is None else codec.encode(event).value
        self._others[Table.CLUSTER, PAUSE_PREFIX + topic_id] = value

    def put_registration(self, process_id: bytes, registration: Registration | None) -> None:
        value = None if registration is None else values.registration_to_bytes(registration)
        self._others[Table.CLUSTER, PROCESS_PREFIX + process_id] = value

    def commit(self, positions: Mapping[int, ReadPosition]) -> None:
        """Write all changes and how far the topic was read, together."""
        batch = self._store.batch()
        segments = _SegmentWrites(batch)
        for subject, entry in self._segments.items():
            before = self._stored[subject]
            if entry is not before:
                segments.put(subject, before, entry)
        self._raise_spans(batch, Table.SEGMENTS_BY_OFFSET, segments.offset_spans)
        self._raise_spans(batch, Table.FINISHED_BY_EPOCH, segments.epoch_spans)
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
        self._changes.changed(self._touched | segments.partitions)

    def _raise_spans(self, batch: StoreBatch, table: Table, spans: Mapping[bytes, int]) -> None:
        for prefix, span in spans.items():
            known = self._store.get(table, prefix)
            if known is None or unpack_number(known) < span:
                batch.put(table, prefix, pack_number(span))


class _SegmentWrites:
    """Segments and their index rows on the way into a batch.

    The spans are the greatest that those rows need, by what an index's keys begin with.
    """

    def __init__(self, batch: StoreBatch) -> None:
        self._batch = batch
        self.offset_spans: dict[bytes, int] = {}
        self.epoch_spans: dict[bytes, int] = {}
        self.partitions: set[bytes] = set()

    def put(self, subject: bytes, before: SegmentEntry | None, after: SegmentEntry | None) -> None:
        """Replace what is stored of a segment."""
        batch = self._batch
        if after is None:
            batch.delete(Table.SEGMENTS, subject)
        else:
            batch.put(Table.SEGMENTS, subject, after.to_bytes())
        old, new = self._index_rows(subject, before), self._index_rows(subject, after)
        for row in new:
            if row not in old:
                batch.put(*row)
        if old:
            kept = {row[:2] for row in new}
            for row in old:
                if row[:2] not in kept:
                    batch.delete(*row[:2])
        self.partitions.add(subject[:PARTITION_SUBJECT_BYTES])

    def _index_rows(self, subject: bytes, entry: SegmentEntry | None) -> Sequence[_Row]:
        """The rows that lead to a segment; by the way the spans are raised to what they need."""
        if entry is None or entry.state is None:
            return ()
        partition, segment_id = subject[:PARTITION_SUBJECT_BYTES], subject[PARTITION_SUBJECT_BYTES:]
        base_offset, end_offset = entry.base_offset, entry.end_offset
        _raise(self.offset_spans, partition, end_offset - base_offset)
        key, value = offset_key(partition, base_offset, segment_id), pack_number(end_offset)
        rows = [(Table.SEGMENTS_BY_OFFSET, key, value)]
        if entry.state is not SegmentState.COPY_SEGMENT_FINISHED:
            rows.append((Table.UNFINISHED_BY_OFFSET, key, value))
            return rows
        begins = True
        for epoch, start_offset, end_offset in entry.epoch_ranges():
            prefix = epoch_prefix(partition, epoch)
            _raise(self.epoch_spans, prefix, end_offset - start_offset)
            key = epoch_key(prefix, start_offset, segment_id)
            value = pack_epoch_row(
                end_offset, entry.size_bytes, entry.has_transaction_index, begins
            )
            rows.append((Table.FINISHED_BY_EPOCH, key, value))
            begins = False
        return rows


def _raise(spans: dict[bytes, int], prefix: bytes, span: int) -> None:
    if spans.get(prefix, 0) < span:
        spans[prefix] = span
