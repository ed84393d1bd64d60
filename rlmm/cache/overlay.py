"""Overlay: the changes of one batch of records over the cache, readable before they are written.

One thread's. A segment that changes several times within a batch is written once, and its index
rows are what its last state asks for.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlmm import codec
from rlmm.cache import values
from rlmm.cache.keys import (
    POLICY_PREFIX,
    PROCESS_PREFIX,
    epoch_key,
    epoch_prefix,
    offset_key,
    pack_number,
    position_key,
    record_key_prefix,
    unpack_number,
)
from rlmm.cache.ordered_store import OrderedStore, StoreBatch, Table
from rlmm.fold import (
    PutPartition,
    PutPolicy,
    PutRecordKey,
    PutRegistration,
    PutSegment,
    Write,
)
from rlmm.positions import ReadPosition
from rlmm.record_keys import PARTITION_SUBJECT_BYTES
from rlmm.segment_entry import SegmentEntry
from rlmm.spi import PartitionState
from rsm.segment.metadata import SegmentState

_Rows = dict[tuple[Table, bytes], int]


class Overlay:
    """A FoldView that takes writes. Memory: the segments and partitions of one batch."""

    def __init__(self, store: OrderedStore) -> None:
        self._store = store
        self._stored: dict[bytes, SegmentEntry | None] = {}
        self._segments: dict[bytes, SegmentEntry | None] = {}
        self._partitions: dict[bytes, PartitionState] = {}
        self._changed_partitions: set[bytes] = set()
        self._others: list[PutRecordKey | PutPolicy | PutRegistration] = []

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        if subject in self._segments:
            return self._segments[subject]
        data = self._store.get(Table.SEGMENTS, subject)
        entry = None if data is None else SegmentEntry.from_bytes(data)
        self._segments[subject] = self._stored[subject] = entry
        return entry

    def partition_state(self, subject: bytes) -> PartitionState:
        state = self._partitions.get(subject)
        if state is None:
            data = self._store.get(Table.PARTITIONS, subject)
            state = PartitionState() if data is None else values.partition_from_bytes(data)
            self._partitions[subject] = state
        return state

    def add(self, write: Write) -> None:
        """Take one write of the fold."""
        if isinstance(write, PutSegment):
            if write.subject not in self._stored:
                self.segment_entry(write.subject)
            self._segments[write.subject] = write.entry
        elif isinstance(write, PutPartition):
            self._partitions[write.subject] = write.state
            self._changed_partitions.add(write.subject)
        else:
            self._others.append(write)

    def commit(self, positions: Mapping[int, ReadPosition]) -> None:
        """Write all changes and how far the topic was read, together."""
        batch = self._store.batch()
        spans: _Rows = {}
        for subject, entry in self._segments.items():
            before = self._stored[subject]
            if entry is not before:
                self._put_segment(batch, spans, subject, before, entry)
        for (table, prefix), span in spans.items():
            known = self._store.get(table, prefix)
            if known is None or unpack_number(known) < span:
                batch.put(table, prefix, pack_number(span))
        for subject in self._changed_partitions:
            value = values.partition_to_bytes(self._partitions[subject])
            batch.put(Table.PARTITIONS, subject, value)
        for write in self._others:
            _put_other(batch, write)
        for partition, position in positions.items():
            key = position_key(partition)
            batch.put(Table.CHECKPOINT, key, values.position_to_bytes(position))
        self._store.write(batch)

    @staticmethod
    def _put_segment(
        batch: StoreBatch,
        spans: _Rows,
        subject: bytes,
        before: SegmentEntry | None,
        after: SegmentEntry | None,
    ) -> None:
        if after is None:
            batch.delete(Table.SEGMENTS, subject)
        else:
            batch.put(Table.SEGMENTS, subject, after.to_bytes())
        old_rows = _index_rows(subject, before, None)
        new_rows = _index_rows(subject, after, spans)
        for row in old_rows:
            if row not in new_rows:
                batch.delete(*row)
        for row, end_offset in new_rows.items():
            if old_rows.get(row) != end_offset:
                batch.put(*row, pack_number(end_offset))


def _index_rows(subject: bytes, entry: SegmentEntry | None, spans: _Rows | None) -> _Rows:
    """The index rows of a segment with their end offsets; `spans` takes the greatest of each."""
    rows: _Rows = {}
    if entry is None or entry.state is None:
        return rows
    partition, segment_id = subject[:PARTITION_SUBJECT_BYTES], subject[PARTITION_SUBJECT_BYTES:]
    table = Table.SEGMENTS_BY_OFFSET
    rows[table, offset_key(partition, entry.base_offset, segment_id)] = entry.end_offset
    if spans is not None:
        _raise_span(spans, (table, partition), entry.end_offset - entry.base_offset)
    if entry.state is not SegmentState.COPY_SEGMENT_FINISHED:
        return rows
    table = Table.FINISHED_BY_EPOCH
    for epoch, start_offset, end_offset in entry.epoch_ranges():
        prefix = epoch_prefix(partition, epoch)
        rows[table, epoch_key(prefix, start_offset, segment_id)] = end_offset
        if spans is not None:
            _raise_span(spans, (table, prefix), end_offset - start_offset)
    return rows


def _raise_span(spans: _Rows, row: tuple[Table, bytes], span: int) -> None:
    if spans.get(row, 0) < span:
        spans[row] = span


def _put_other(batch: StoreBatch, write: PutRecordKey | PutPolicy | PutRegistration) -> None:
    match write:
        case PutRecordKey():
            prefix = record_key_prefix(write.key.subject, write.key.kind)
            value = None if write.offset is None else pack_number(write.offset)
            _put_or_delete(batch, Table.RECORD_KEYS, prefix + write.key.event_id, value)
        case PutPolicy():
            value = None if write.event is None else codec.encode(write.event).value
            _put_or_delete(batch, Table.CLUSTER, POLICY_PREFIX + write.topic_id, value)
        case PutRegistration():
            found = write.registration
            value = None if found is None else values.registration_to_bytes(found)
            _put_or_delete(batch, Table.CLUSTER, PROCESS_PREFIX + write.process_id, value)


def _put_or_delete(batch: StoreBatch, table: Table, key: bytes, value: bytes | None) -> None:
    if value is None:
        batch.delete(table, key)
    else:
        batch.put(table, key, value)
