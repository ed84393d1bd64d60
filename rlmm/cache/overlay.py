"""Overlay: the changes of one batch of records over the cache, readable before they are written.

One thread's. A segment that changes several times within a batch is written once, and its index
rows are what its last state asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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

_Rows = Mapping[bytes, bytes]
_NO_ROWS: _Rows = {}


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
        self._touched.add(subject[:PARTITION_SUBJECT_BYTES])

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
        for table, spans in segments.spans():
            self._put_spans(batch, table, spans)
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
        self._changes.changed(self._touched)

    def _put_spans(self, batch: StoreBatch, table: Table, spans: dict[bytes, int]) -> None:
        for prefix, span in spans.items():
            known = self._store.get(table, prefix)
            if known is None or unpack_number(known) < span:
                batch.put(table, prefix, pack_number(span))


class _SegmentWrites:
    """Segments and their index rows on the way into a batch, and the greatest span of each index.

    An index row is a key and a value.
    """

    def __init__(self, batch: StoreBatch) -> None:
        self._batch = batch
        self._offset_spans: dict[bytes, int] = {}
        self._epoch_spans: dict[bytes, int] = {}

    def spans(self) -> Iterator[tuple[Table, dict[bytes, int]]]:
        """By table and prefix."""
        yield Table.SEGMENTS_BY_OFFSET, self._offset_spans
        yield Table.FINISHED_BY_EPOCH, self._epoch_spans

    def put(self, subject: bytes, before: SegmentEntry | None, after: SegmentEntry | None) -> None:
        """Replace what is stored of a segment."""
        if after is None:
            self._batch.delete(Table.SEGMENTS, subject)
        else:
            self._batch.put(Table.SEGMENTS, subject, after.to_bytes())
        old, new = _offset_row(subject, before), _offset_row(subject, after)
        self._replace(Table.SEGMENTS_BY_OFFSET, old, new)
        old, new = _if_unfinished(before, old), _if_unfinished(after, new)
        if old or new:
            self._replace(Table.UNFINISHED_BY_OFFSET, old, new)
        old, new = self._epoch_rows(subject, before), self._epoch_rows(subject, after)
        self._replace(Table.FINISHED_BY_EPOCH, old, new)
        if after is not None and after.state is not None:
            partition = subject[:PARTITION_SUBJECT_BYTES]
            span = after.end_offset - after.base_offset
            if self._offset_spans.get(partition, 0) < span:
                self._offset_spans[partition] = span

    def _replace(self, table: Table, old: _Rows, new: _Rows) -> None:
        for key in old:
            if key not in new:
                self._batch.delete(table, key)
        for key, value in new.items():
            if old.get(key) != value:
                self._batch.put(table, key, value)

    def _epoch_rows(self, subject: bytes, entry: SegmentEntry | None) -> _Rows:
        """An entry's rows by epoch; their spans are raised by the way."""
        if entry is None or entry.state is not SegmentState.COPY_SEGMENT_FINISHED:
            return _NO_ROWS
        partition, segment_id = subject[:PARTITION_SUBJECT_BYTES], subject[PARTITION_SUBJECT_BYTES:]
        size_bytes, transactional = entry.size_bytes, entry.has_transaction_index
        spans = self._epoch_spans
        rows: dict[bytes, bytes] = {}
        for epoch, start_offset, end_offset in entry.epoch_ranges():
            prefix, span = epoch_prefix(partition, epoch), end_offset - start_offset
            if spans.get(prefix, 0) < span:
                spans[prefix] = span
            rows[epoch_key(prefix, start_offset, segment_id)] = pack_epoch_row(
                end_offset, size_bytes, has_transaction_index=transactional, begins=not rows
            )
        return rows


def _offset_row(subject: bytes, entry: SegmentEntry | None) -> _Rows:
    if entry is None or entry.state is None:
        return _NO_ROWS
    partition, segment_id = subject[:PARTITION_SUBJECT_BYTES], subject[PARTITION_SUBJECT_BYTES:]
    key = offset_key(partition, entry.base_offset, segment_id)
    return {key: pack_number(entry.end_offset)}


def _if_unfinished(entry: SegmentEntry | None, row: _Rows) -> _Rows:
    finished = entry is None or entry.state is SegmentState.COPY_SEGMENT_FINISHED
    return _NO_ROWS if finished else row
