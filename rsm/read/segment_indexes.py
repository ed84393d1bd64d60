"""Reads a stored segment's indexes, and looks up positions in them for fetches.

rsm.segment.indexes defines the format of the indexes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rsm.read.unreadable_segment import naming_segment
from rsm.segment.batches.aborted import AbortedTransactions, Isolation
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OFFSET_ENTRY, OffsetIndex, OffsetIndexEntry, TimeIndex
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange
from rsm.spi import IndexType, RemoteStorageManager

# If two index entries are at least this far apart, the batch at the first entry may be large.
_LARGE_BATCH_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPosition:
    """Represents what the offset index says about the position of an offset's batch.

    The batch begins at or after `entry`, and ends at or before `reach_position`. `likely` is the
    next entry if the batch probably begins there, else None. A broker indexes the last offset of a
    batch, so a large batch at `entry` ends below the offset.
    """

    entry: OffsetIndexEntry
    likely: OffsetIndexEntry | None
    reach_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentIndexes:
    """Represents a segment's offset index, and its overlapping aborted transactions."""

    offset_index: OffsetIndex
    aborted_transactions: tuple[AbortedTransaction, ...]

    def lookup(self, offset: int, log_bytes: int) -> OffsetIndexEntry:
        """Return the index entry at which a read of `offset` begins.

        Raises CorruptError if the entry is outside the log or above `offset`. Checks only the found
        entry, because an index may have 250 000 entries. The companion's checksum covers all
        entries, and the reader compares the first batch with the found entry.
        """
        entry = self.offset_index.lookup(offset)
        if not (0 <= entry.position < log_bytes and entry.offset <= offset):
            raise CorruptError(
                "an index entry is out of order or out of bounds", offset=offset, entry=entry
            )
        return entry

    def location(self, offset: int, log_bytes: int) -> IndexedPosition:
        """Return the position of `offset`'s batch. Raises the errors of `lookup`."""
        entry = self.lookup(offset, log_bytes)
        following = self.offset_index.following(offset)
        reach_position = self.offset_index.end_position(offset)
        is_likely = (
            following is not None
            and 0 < entry.position <= following.position - _LARGE_BATCH_BYTES
            and following.position < log_bytes
            and entry.offset < offset
        )
        return IndexedPosition(
            entry=entry,
            likely=following if is_likely else None,
            reach_position=log_bytes if reach_position is None else reach_position,
        )

    def aborted_within(self, offsets: OffsetRange) -> tuple[AbortedTransaction, ...]:
        """Return the aborted transactions with an offset in `offsets`."""
        return tuple(
            each
            for each in self.aborted_transactions
            if each.first_offset < offsets.end_offset and each.last_offset >= offsets.start_offset
        )


def read_indexes(
    storage: RemoteStorageManager, metadata: RemoteLogSegmentMetadata
) -> SegmentIndexes:
    """Read a segment's indexes for fetches.

    Raises NotFoundError, CorruptError or RetriableError.
    """
    with naming_segment(metadata):
        data = storage.fetch_index(metadata, IndexType.OFFSET)
        if len(data) % OFFSET_ENTRY.size:
            raise CorruptError("the index ends within an entry", segment_id=metadata.segment_id)
        return SegmentIndexes(
            offset_index=OffsetIndex(base_offset=metadata.offsets.start_offset, data=data),
            aborted_transactions=storage.fetch_aborted_transactions(metadata),
        )


def read_time_index(storage: RemoteStorageManager, metadata: RemoteLogSegmentMetadata) -> TimeIndex:
    """Read and check the time index. Raises NotFoundError, CorruptError or RetriableError."""
    with naming_segment(metadata):
        data = storage.fetch_index(metadata, IndexType.TIMESTAMP)
        return TimeIndex.parse(data, offsets=metadata.offsets)


def read_aborted(
    storage: RemoteStorageManager, metadata: RemoteLogSegmentMetadata, isolation: Isolation
) -> AbortedTransactions:
    """Read the aborted transactions that a reader skips; none for READ_UNCOMMITTED.

    Raises NotFoundError, CorruptError or RetriableError.
    """
    if isolation is Isolation.READ_UNCOMMITTED:
        return AbortedTransactions()
    with naming_segment(metadata):
        return AbortedTransactions(storage.fetch_aborted_transactions(metadata))
