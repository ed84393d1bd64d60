"""StoreOnlyLog: reads a partition's records from the store alone, each once and in order.

Without the metadata topic, the companions decide what is read (rsm.read.store_scan). An offset is
read from a complete segment that contains it in the lineage. If several segments contain the
offset, their records are equal. The first in this order is read: the highest end in the lineage,
the lowest start, the highest leader epoch of the writer, the newest copy, the lowest segment id.

If a segment is damaged, another segment with the next offset is read instead. An offset that no
complete segment contains is an error, because the store does not record gaps. It is also an error
if the log may continue in an unreadable segment.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from rlm.remote_read.reader import LookedUpReader
from rlm.remote_read.stored_records import TierRecords, stored_records
from rlm.remote_read.timestamps import first_record_since
from rlmm.lookup import NotStored, StoredLog
from rsm.read.store_scan import PartitionScan, UnreadableSegment
from rsm.segment.batches.aborted import Isolation
from rsm.segment.coverage import StoredRange, stored_end, stored_ranges
from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange
from rsm.spi import RemoteStorageManager

_log = logging.getLogger(__name__)


class StoreOnlyLog:
    """Represents one partition, read by one thread. `reader` reads from `storage`."""

    def __init__(
        self,
        found: PartitionScan,
        storage: RemoteStorageManager,
        reader: LookedUpReader,
        isolation: Isolation,
    ) -> None:
        self._found = found
        self._storage = storage
        self._reader = reader
        self._isolation = isolation
        self._segments: Sequence[RemoteLogSegmentMetadata] = found.segments
        self._unreadable = list(found.unreadable)
        self._log = self._log_of(found.segments)

    def offsets(self) -> OffsetRange:
        """Return the range from the first stored offset to the end offset; it may have holes.

        If no complete segment is stored, raises the error of an unreadable segment; NotFoundError
        if there is none.
        """
        end_offset = stored_end(self._log.ranges)
        if end_offset is None:
            for each in self._unreadable:
                raise each.error
            raise NotFoundError(
                "cannot read the partition: the store has no complete segment of it",
                partition=self._found.topic_id_partition,
            )
        return OffsetRange(
            start_offset=self._log.ranges[0].offsets.start_offset, end_offset=end_offset
        )

    def offset_since(self, timestamp_ms: int) -> int | None:
        """Return the first offset with at least `timestamp_ms`; None if no record has it."""
        found = first_record_since(self._reader, self._log.ranges, timestamp_ms)
        return None if found is None else found.offset

    def read(self, from_offset: int, end_offset: int | None = None) -> Iterator[TierRecords]:
        """Read the records of [from_offset, end_offset); None means the stored end offset.

        Raises NotFoundError for an offset that no complete segment contains, CorruptError with the
        object and the position of damage, and RetriableError. If `end_offset` is None and an
        unreadable segment may contain later offsets, raises its error after all records.
        """
        position = from_offset
        until_offset = self.offsets().end_offset if end_offset is None else end_offset
        while position < until_offset:
            found = self._log.at(position)
            if isinstance(found, NotStored):
                raise self._absent(found)
            wanted = OffsetRange(start_offset=position, end_offset=until_offset)
            scan = self._reader.scan_log(self._look_up, position, until_offset)
            try:
                for records in stored_records(scan, wanted, self._storage, self._isolation):
                    yield records
                    position = records.records[-1].offset + 1
            except (NotFoundError, CorruptError) as error:
                position = max(position, scan.next_offset)
                self._leave_out(error, position)
                continue
            if scan.next_offset <= wanted.start_offset:
                raise CorruptError(
                    "cannot read the stored segment: it contains no batch at or above the offset",
                    segment_id=found.metadata.segment_id,
                    offset=wanted.start_offset,
                )
            position = max(position, scan.next_offset)
        if end_offset is None:
            self._require_end(until_offset)

    def _look_up(self, offset: int) -> StoredRange | NotStored:
        return self._log.at(offset)

    def _leave_out(self, error: TieredStorageError, offset: int) -> None:
        """Continue without the damaged segment; raise its error if no other contains the offset."""
        segment_id = error.context.get("segment_id")
        remaining = [each for each in self._segments if each.segment_id != segment_id]
        log = self._log_of(remaining)
        if len(remaining) == len(self._segments) or isinstance(log.at(offset), NotStored):
            raise error
        (damaged,) = (each for each in self._segments if each.segment_id == segment_id)
        self._unreadable.append(
            UnreadableSegment(
                error=error,
                from_offset=damaged.offsets.start_offset,
                end_offset=damaged.offsets.end_offset,
            )
        )
        self._segments, self._log = remaining, log
        _log.warning(
            LogLine(
                "reading a damaged segment's offsets from another segment",
                offset=offset,
                reason=error,
            )
        )

    def _absent(self, found: NotStored) -> TieredStorageError:
        """Return the error for an offset that no complete segment contains."""
        for each in self._unreadable:
            if each.may_have(found.offset):
                return each.error
        missing = (
            each.missing_key for each in self._found.partly_deleted if found.offset in each.offsets
        )
        missing_key = next(missing, None)
        return NotFoundError(
            "cannot read the offset: no complete segment in the store contains it",
            partition=self._found.topic_id_partition,
            offset=found.offset,
            until_offset=found.until_offset,
            **({} if missing_key is None else {"missing_object": missing_key}),
            **({} if found.until_offset is None else {"advice": "Continue at until_offset"}),
        )

    def _require_end(self, end_offset: int) -> None:
        for each in self._unreadable:
            if each.may_have(end_offset):
                raise each.error

    def _log_of(self, segments: Sequence[RemoteLogSegmentMetadata]) -> StoredLog:
        ranges = stored_ranges(self._found.lineage, segments)
        return StoredLog(self._found.topic_id_partition, ranges, gaps=())
