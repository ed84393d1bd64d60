"""Searches over a consistent view of the cache: by (epoch, offset), by offset range.

Each answer is a function of the set of segments alone: spans only bound how far to look.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlmm.cache.keys import (
    MAX_OFFSET,
    after,
    epoch_key,
    epoch_key_parts,
    epoch_prefix,
    epoch_row_end,
    offset_key,
    offset_key_segment_id,
    unpack_epoch_row,
    unpack_number,
)
from rlmm.cache.ordered_store import StoreReader, Table
from rsm.segment.epochs import EpochEntry, Lineage

_BY_EPOCH = Table.FINISHED_BY_EPOCH
_BY_OFFSET = Table.SEGMENTS_BY_OFFSET


def find_finished(
    reader: StoreReader, partition: bytes, leader_epoch: int, offset: int
) -> bytes | None:
    """Subject of the finished segment that holds `offset` as `leader_epoch` wrote it, or None.

    Of several the one that reaches furthest in that epoch; of those that reach equally far the
    one that begins last; of those the greatest id.
    """
    if leader_epoch < 0 or offset < 0:
        return None
    prefix = epoch_prefix(partition, leader_epoch)
    span = _span(reader, _BY_EPOCH, prefix)
    best: tuple[int, int, bytes] | None = None
    # A segment that begins at offset - span or below ends at `offset` or below.
    lowest = epoch_key(prefix, max(0, offset - span + 1))
    for key, value in reader.ascending(_BY_EPOCH, lowest, epoch_key(prefix, offset + 1)):
        start_offset, segment_id = epoch_key_parts(key)
        end_offset = epoch_row_end(value)
        if end_offset > offset:
            found = (end_offset, start_offset, segment_id)
            best = found if best is None else max(best, found)
    return None if best is None else partition + best[2]


def find_transactional(
    reader: StoreReader, partition: bytes, leader_epoch: int, offset: int
) -> bytes | None:
    """Subject of the first finished segment with a transaction index from `offset` on, or None.

    The one that `find_finished` would come to, asked at the end of each segment it found before;
    in one pass over the rows up to there.
    """
    if leader_epoch < 0 or offset < 0:
        return None
    prefix = epoch_prefix(partition, leader_epoch)
    span = _span(reader, _BY_EPOCH, prefix)
    lowest = epoch_key(prefix, max(0, offset - span + 1))
    best: tuple[int, int, bytes, bool] | None = None  # of those that hold `offset`
    for key, value in reader.ascending(_BY_EPOCH, lowest, after(prefix)):
        start_offset, segment_id = epoch_key_parts(key)
        if start_offset > offset:
            if best is None or best[3]:
                break
            # No row before reaches further, so the next look-up is answered by rows from here on.
            offset, best = best[0], None
            if start_offset > offset:
                break
        row = unpack_epoch_row(value)
        if row.end_offset > offset:
            found = (row.end_offset, start_offset, segment_id, row.has_transaction_index)
            best = found if best is None else max(best, found)
    return partition + best[2] if best is not None and best[3] else None


def highest_end_offset(reader: StoreReader, partition: bytes, leader_epoch: int) -> int | None:
    """The end of what an epoch's finished segments reach, or None if there are none."""
    if leader_epoch < 0:
        return None
    prefix = epoch_prefix(partition, leader_epoch)
    span = _span(reader, _BY_EPOCH, prefix)
    highest: int | None = None
    lowest, end = epoch_key(prefix, 0), epoch_key(prefix, MAX_OFFSET + 1)
    for key, value in reader.descending(_BY_EPOCH, lowest, end):
        start_offset, _ = epoch_key_parts(key)
        if highest is not None and start_offset + span <= highest:
            break
        end_offset = epoch_row_end(value)
        highest = end_offset if highest is None else max(highest, end_offset)
    return highest


def lineage_segments(
    reader: StoreReader, partition: bytes, lineage: Lineage, from_offset: int
) -> Iterator[tuple[int, bytes]]:
    """Finished segments that hold offsets above `from_offset` in an epoch of the lineage.

    As (where they begin in that epoch, subject), ascending; one stands in each of its epochs.
    """
    for entry, own_end in _open_ended(lineage):
        if own_end <= from_offset:
            continue
        prefix = epoch_prefix(partition, entry.epoch)
        begin = max(0, from_offset - _span(reader, _BY_EPOCH, prefix) + 1, entry.start_offset)
        rows = reader.ascending(_BY_EPOCH, epoch_key(prefix, begin), epoch_key(prefix, own_end))
        for key, value in rows:
            if epoch_row_end(value) > from_offset:
                start_offset, segment_id = epoch_key_parts(key)
                yield start_offset, partition + segment_id


def epoch_size_bytes(reader: StoreReader, partition: bytes, leader_epoch: int) -> int:
    """Bytes of the finished segments that hold records of an epoch."""
    if leader_epoch < 0:
        return 0
    prefix = epoch_prefix(partition, leader_epoch)
    rows = reader.ascending(_BY_EPOCH, epoch_key(prefix, 0), after(prefix))
    return sum(unpack_epoch_row(value).size_bytes for _, value in rows)


def lineage_size_bytes(reader: StoreReader, partition: bytes, lineage: Lineage) -> int:
    """Bytes of the finished segments that begin in the lineage, each once."""
    total_bytes = 0
    for entry, own_end in _open_ended(lineage):
        prefix = epoch_prefix(partition, entry.epoch)
        begin, end = epoch_key(prefix, entry.start_offset), epoch_key(prefix, own_end)
        for _, value in reader.ascending(_BY_EPOCH, begin, end):
            row = unpack_epoch_row(value)
            total_bytes += row.size_bytes if row.begins else 0
    return total_bytes


def segments_from(
    reader: StoreReader, partition: bytes, from_offset: int, table: Table = _BY_OFFSET
) -> Iterator[bytes]:
    """Subjects of the segments that end above `from_offset`, ascending by base offset.

    `table`: of which, SEGMENTS_BY_OFFSET or UNFINISHED_BY_OFFSET.
    """
    span = _span(reader, _BY_OFFSET, partition)
    lowest = offset_key(partition, max(0, from_offset - span + 1))
    for key, value in reader.ascending(table, lowest, after(partition)):
        if unpack_number(value) > from_offset:
            yield partition + offset_key_segment_id(key)


def epoch_segments(reader: StoreReader, partition: bytes, leader_epoch: int) -> Iterator[bytes]:
    """Subjects of the finished segments that hold records of an epoch."""
    if leader_epoch >= 0:
        prefix = epoch_prefix(partition, leader_epoch)
        for key, _ in reader.ascending(_BY_EPOCH, epoch_key(prefix, 0), after(prefix)):
            yield partition + epoch_key_parts(key)[1]


def _open_ended(lineage: Lineage) -> Iterator[tuple[EpochEntry, int]]:
    """Each epoch with its end; the last one's is above all offsets."""
    end_offset = MAX_OFFSET + 1
    found = []
    for entry in reversed(lineage.entries):
        found.append((entry, end_offset))
        end_offset = entry.start_offset
    return reversed(found)


def _span(reader: StoreReader, table: Table, prefix: bytes) -> int:
    value = reader.get(table, prefix)
    return 0 if value is None else unpack_number(value)
