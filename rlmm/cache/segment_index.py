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
    offset_key,
    offset_key_segment_id,
    unpack_number,
)
from rlmm.cache.ordered_store import StoreReader, Table

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
    for key, value in reader.descending(_BY_EPOCH, lowest, epoch_key(prefix, offset + 1)):
        start_offset, segment_id = epoch_key_parts(key)
        end_offset = unpack_number(value)
        if end_offset > offset:
            found = (end_offset, start_offset, segment_id)
            best = found if best is None else max(best, found)
    return None if best is None else partition + best[2]


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
        end_offset = unpack_number(value)
        highest = end_offset if highest is None else max(highest, end_offset)
    return highest


def segments_from(reader: StoreReader, partition: bytes, from_offset: int) -> Iterator[bytes]:
    """Subjects of the segments that end above `from_offset`, ascending by base offset."""
    span = _span(reader, _BY_OFFSET, partition)
    lowest = offset_key(partition, max(0, from_offset - span + 1))
    for key, value in reader.ascending(_BY_OFFSET, lowest, after(partition)):
        if unpack_number(value) > from_offset:
            yield partition + offset_key_segment_id(key)


def _span(reader: StoreReader, table: Table, prefix: bytes) -> int:
    value = reader.get(table, prefix)
    return 0 if value is None else unpack_number(value)
