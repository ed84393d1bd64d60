"""RemoteTimestamps: finds stored records by timestamp, in time indexes and then in batches.

Like Kafka's RemoteLogManager.findOffsetByTimestamp, it skips segments whose greatest timestamp is
too old. It never returns records outside of the lineage or below the log start offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from rlmm.lookup import readable_ranges
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.batches.batch import NO_TIMESTAMP, BatchHeader, scan_batches
from rsm.segment.batches.records import record_times
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.ids import TopicIdPartition
from rsm.segment.indexes import TimeIndex
from rsm.segment.metadata import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    """Represents a record; `leader_epoch` is None if its batch has none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int | None


class StoredSegmentReader(Protocol):
    """Reads stored segments (RemoteLogReader, CachedSegments). Thread-safe, blocking."""

    def time_index(self, metadata: RemoteLogSegmentMetadata) -> TimeIndex:
        """Return a segment's complete, verified time index."""

    def scan_segment(self, stored: StoredRange, from_offset: int) -> Iterable[StoredBatches]:
        """Yield runs of batches, from the batch with `from_offset` to the last readable one."""


class RemoteTimestamps:
    """Searches stored segments by timestamp. Thread-safe. Raises the errors of the reader."""

    def __init__(self, metadata: RemoteLogMetadataManager, reader: StoredSegmentReader) -> None:
        self._metadata = metadata
        self._reader = reader

    def offset_since(self, topic_id_partition: TopicIdPartition, timestamp_ms: int) -> int | None:
        """Return the first offset with at least `timestamp_ms`; None if no record has it."""
        found = self.record_since(topic_id_partition, timestamp_ms)
        return None if found is None else found.offset

    def record_since(
        self,
        topic_id_partition: TopicIdPartition,
        timestamp_ms: int,
        *,
        below_offset: int | None = None,
    ) -> FoundRecord | None:
        """Return the record of `offset_since`; skip segments that start at `below_offset` or later.

        The record may still be at or above `below_offset`.
        """
        ranges = readable_ranges(self._metadata, topic_id_partition)
        return first_record_since(
            self._reader,
            takewhile(
                lambda each: below_offset is None or each.offsets.start_offset < below_offset,
                ranges,
            ),
            timestamp_ms,
        )

    def record_of_max_timestamp(
        self, topic_id_partition: TopicIdPartition, *, above_ms: int = NO_TIMESTAMP
    ) -> FoundRecord | None:
        """Return the first record with the greatest timestamp, if it is above `above_ms`.

        A segment that is readable in part is scanned, because its maximum may be in the other part.
        """
        best: FoundRecord | None = None
        ranges = readable_ranges(self._metadata, topic_id_partition)
        for stored in sorted(ranges, key=lambda r: -r.metadata.max_timestamp_ms):
            best_ms = above_ms if best is None else best.timestamp_ms
            greatest_ms = stored.metadata.max_timestamp_ms
            if greatest_ms < best_ms or greatest_ms <= above_ms:
                break
            found = self._greatest_in(stored)
            if found is not None and found.timestamp_ms > above_ms:
                best = found if best is None else min(best, found, key=_newest_first)
        return best

    def _greatest_in(self, stored: StoredRange) -> FoundRecord | None:
        if stored.offsets == stored.metadata.offsets:
            return _in_segment(self._reader, stored, stored.metadata.max_timestamp_ms)
        best: FoundRecord | None = None
        start_offset = stored.offsets.start_offset
        for run in self._reader.scan_segment(stored, start_offset):
            for position, header in scan_batches(run.data):
                if header.max_timestamp_ms > (best.timestamp_ms if best else NO_TIMESTAMP):
                    at_least_ms = best.timestamp_ms + 1 if best else 0
                    best = (
                        _greatest_in_batch(run, position, header, start_offset, at_least_ms) or best
                    )
        return best


def first_record_since(
    reader: StoredSegmentReader, ranges: Iterable[StoredRange], timestamp_ms: int
) -> FoundRecord | None:
    """Return the first record with at least `timestamp_ms`; None if the ranges have none.

    The ranges must ascend.
    """
    for stored in ranges:
        if stored.metadata.max_timestamp_ms < timestamp_ms:
            continue
        found = _in_segment(reader, stored, timestamp_ms)
        if found is not None:
            return found
    return None


def _in_segment(
    reader: StoredSegmentReader, stored: StoredRange, timestamp_ms: int
) -> FoundRecord | None:
    index = reader.time_index(stored.metadata)
    from_offset = max(index.lookup(timestamp_ms).offset, stored.offsets.start_offset)
    if from_offset not in stored.offsets:
        return None
    start_offset = stored.offsets.start_offset
    for run in reader.scan_segment(stored, from_offset):
        for position, header in scan_batches(run.data):
            if header.max_timestamp_ms < timestamp_ms:
                continue
            for offset, found_ms in _times(run, position, header):
                if found_ms >= timestamp_ms and offset >= start_offset:
                    return _found(header, offset, found_ms)
    return None


def _greatest_in_batch(
    run: StoredBatches, position: int, header: BatchHeader, start_offset: int, at_least_ms: int
) -> FoundRecord | None:
    # A small compressed batch can have millions of records, so no list of them is built.
    newest_first = (
        (-found_ms, offset)
        for offset, found_ms in _times(run, position, header)
        if offset >= start_offset and found_ms >= at_least_ms
    )
    first = min(newest_first, default=None)
    return None if first is None else _found(header, first[1], -first[0])


def _times(run: StoredBatches, position: int, header: BatchHeader) -> Iterator[tuple[int, int]]:
    """Return each record's offset and timestamp; a control batch counts as one, as in Kafka."""
    if header.is_control:
        return iter([(header.base_offset, header.max_timestamp_ms)])
    return record_times(header, run.data[position : position + header.length_bytes])


def _found(header: BatchHeader, offset: int, timestamp_ms: int) -> FoundRecord:
    epoch = None if header.partition_leader_epoch < 0 else header.partition_leader_epoch
    return FoundRecord(offset=offset, timestamp_ms=timestamp_ms, leader_epoch=epoch)


def _newest_first(record: FoundRecord) -> tuple[int, int]:
    return -record.timestamp_ms, record.offset
