"""Searches one partition's segments by epoch and offset, or by a range of offsets.

Each result depends only on the set of segments; the bounds only limit the search. The view reads
the bounds after it takes its snapshot. They never become narrower, so they cover the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from rlmm.cache.keys import (
    MAX_OFFSET,
    OFFSET_KEY_ID,
    epoch_key,
    offset_key,
    offset_key_parts,
    offset_key_subject,
    pack_number,
    unpack_epoch_bases,
    unpack_number,
)
from rlmm.cache.ordered_store import OrderedStore, StoreReader, Table
from rlmm.state.segment_entry import SegmentEntry, entry_value, finished_part, pack_covered_epoch
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.metadata import SegmentState

_SEGMENTS = Table.SEGMENTS
_FINISHED = SegmentState.COPY_SEGMENT_FINISHED


class EpochPart(NamedTuple):
    """Represents one epoch's part of a finished segment; `data` is the segment's entry as bytes.

    The parts of an epoch are sorted by these fields, in this order.
    """

    start_offset: int
    segment_id: bytes
    end_offset: int
    data: bytes


class SegmentView:
    """Represents one partition's segments, until its reader closes. Not thread-safe."""

    def __init__(self, store: OrderedStore, reader: StoreReader, partition: bytes) -> None:
        """Search `reader`, a view of SEGMENTS in `store`. `partition` is a partition subject."""
        self._store = store
        self._reader = reader
        self._partition = partition
        span = store.get(Table.BOUNDS, partition)
        self._span = 0 if span is None else unpack_number(span)

    def find_finished(self, leader_epoch: int, offset: int) -> bytes | None:
        """Return the record value of the finished segment that contains `offset` in an epoch.

        If several segments do, returns the segment with the highest end offset in that epoch. Ties
        are broken by the highest start offset in that epoch, then by the greatest id.
        """
        if leader_epoch < 0 or offset < 0:
            return None
        best: tuple[int, int, bytes, bytes] | None = None
        for key, data in self._rows(self._covering(offset), offset + 1):
            part = finished_part(data, leader_epoch)
            if part is not None and part[0] <= offset < part[1]:
                # Compare ids too, because the keys of equal parts need not be in the order of ids.
                found = (part[1], part[0], key[OFFSET_KEY_ID:], data)
                best = found if best is None or found > best else best
        return None if best is None else entry_value(best[3])

    def find_transactional(self, leader_epoch: int, offset: int) -> SegmentEntry | None:
        """Return the first finished segment from `offset` that has a transaction index.

        The result is that of calling `find_finished` repeatedly, each time at the end offset of the
        segment found before. But this needs only one pass over the segments.
        """
        if leader_epoch < 0 or offset < 0:
            return None
        # This is the best of the parts that contain `offset`.
        best: tuple[int, int, bytes, SegmentEntry] | None = None
        for part in self._of_epoch(leader_epoch, self._covering(offset), MAX_OFFSET + 1):
            if part.start_offset > offset:
                if best is None or best[3].has_transaction_index:
                    break
                # No earlier part reaches further, so the search continues at the end of `best`.
                offset, best = best[0], None
                if part.start_offset > offset:
                    break
            if part.end_offset > offset:
                entry = SegmentEntry.from_bytes(part.data)
                found = (part.end_offset, part.start_offset, part.segment_id, entry)
                best = found if best is None else max(best, found, key=_reach)
        return best[3] if best is not None and best[3].has_transaction_index else None

    def highest_end_offset(self, leader_epoch: int) -> int | None:
        """Return the end offset of an epoch in its finished segments; None if it has none."""
        begin, end = self._where_epoch_is(leader_epoch, 0, MAX_OFFSET + 1)
        begin_key, end_key = offset_key(self._partition, begin), offset_key(self._partition, end)
        highest: int | None = None
        for key, data in self._reader.descending(_SEGMENTS, begin_key, end_key):
            if highest is not None and offset_key_parts(key)[0] + self._span <= highest:
                break
            part = finished_part(data, leader_epoch)
            if part is not None:
                highest = part[1] if highest is None else max(highest, part[1])
        return highest

    def of_lineage(
        self, lineage: Lineage, from_offset: int
    ) -> Iterator[tuple[EpochPart, SegmentEntry]]:
        """Yield the parts of finished segments that begin in the lineage, each with its segment.

        Omits parts that end at or below `from_offset`. The parts ascend by start offset. A segment
        appears once for each of its epochs.
        """
        for entry, own_end in _open_ended(lineage):
            if own_end <= from_offset:
                continue
            begin = self._covering(max(from_offset, entry.start_offset))
            for part in self._of_epoch(entry.epoch, begin, own_end):
                within = entry.start_offset <= part.start_offset < own_end
                if within and part.end_offset > from_offset:
                    yield part, SegmentEntry.from_bytes(part.data)

    def of_epoch(self, leader_epoch: int) -> Iterator[SegmentEntry]:
        """Yield the finished segments with records of an epoch."""
        for part in self._of_epoch(leader_epoch, 0, MAX_OFFSET + 1):
            yield SegmentEntry.from_bytes(part.data)

    def lineage_size_bytes(self, lineage: Lineage) -> int:
        """Return the total size of the finished segments that begin in the lineage."""
        ranges = {entry.epoch: (entry.start_offset, end) for entry, end in _open_ended(lineage)}
        total_bytes = 0
        for entry in self.from_offset(0) if ranges else ():
            if entry.state is _FINISHED:
                epoch, start_offset, _ = entry.epoch_ranges()[0]
                own_start, own_end = ranges.get(epoch, (0, 0))
                total_bytes += entry.size_bytes if own_start <= start_offset < own_end else 0
        return total_bytes

    def from_offset(
        self, from_offset: int, leader_epoch: int | None = None, *, unfinished: bool = False
    ) -> Iterator[SegmentEntry]:
        """Yield the segments that end above `from_offset`, ascending by base offset and id.

        With `leader_epoch`, yields only segments with records of that epoch. With `unfinished`,
        yields only unfinished segments; the reader must then include UNFINISHED_BY_OFFSET.
        """
        begin, end = self._covering(from_offset), MAX_OFFSET + 1
        epoch = b""
        if leader_epoch is not None:
            begin, end = self._where_epoch_is(leader_epoch, begin, end)
            epoch = pack_covered_epoch(leader_epoch)
        for _, data in (self._unfinished_rows if unfinished else self._rows)(begin, end):
            entry = SegmentEntry.from_bytes(data)
            if entry.end_offset > from_offset and (not epoch or epoch in entry.covered_epochs()):
                yield entry

    def entries(self, end: int = MAX_OFFSET + 1) -> Iterator[tuple[bytes, SegmentEntry]]:
        """Yield segments with a record left and a base offset below `end`, with their subjects."""
        for key, data in self._rows(0, end):
            yield offset_key_subject(key), SegmentEntry.from_bytes(data)

    def _of_epoch(self, leader_epoch: int, begin: int, end: int) -> Iterator[EpochPart]:
        """Yield an epoch's parts of segments with base offsets in [begin, end), sorted."""
        waiting: list[EpochPart] = []
        for key, data in self._rows(*self._where_epoch_is(leader_epoch, begin, end)):
            base_offset, segment_id = offset_key_parts(key)
            # No part begins below the base offset of its segment.
            while waiting and waiting[0].start_offset < base_offset:
                yield heappop(waiting)
            part = finished_part(data, leader_epoch)
            if part is not None:
                heappush(waiting, EpochPart(part[0], segment_id, part[1], data))
        while waiting:
            yield heappop(waiting)

    def _rows(self, begin: int, end: int) -> Iterator[tuple[bytes, bytes]]:
        partition = self._partition
        begin_key, end_key = partition + pack_number(begin), partition + pack_number(end)
        return self._reader.ascending(_SEGMENTS, begin_key, end_key)

    def _unfinished_rows(self, begin: int, end: int) -> Iterator[tuple[bytes, bytes]]:
        begin_key, end_key = offset_key(self._partition, begin), offset_key(self._partition, end)
        for key, _ in self._reader.ascending(Table.UNFINISHED_BY_OFFSET, begin_key, end_key):
            data = self._reader.get(_SEGMENTS, key)
            if data is not None:
                yield key, data

    def _covering(self, offset: int) -> int:
        """Return the lowest possible base offset of a segment that ends above `offset`."""
        return max(0, offset - self._span + 1)

    def _where_epoch_is(self, leader_epoch: int, begin: int, end: int) -> tuple[int, int]:
        """Return the part of [begin, end) that can contain the epoch's base offsets."""
        value = None
        if leader_epoch >= 0:
            value = self._store.get(Table.BOUNDS, epoch_key(self._partition, leader_epoch))
        if value is None:
            return begin, begin
        bases = unpack_epoch_bases(value)
        begin = max(begin, bases.least_offset)
        return begin, max(begin, min(end, bases.greatest_offset + 1))


def _reach(found: tuple[int, int, bytes, object]) -> tuple[int, int, bytes]:
    return found[:3]


def _open_ended(lineage: Lineage) -> Iterator[tuple[EpochEntry, int]]:
    """Return each epoch with its end offset, which for the last epoch is above all offsets."""
    end_offset = MAX_OFFSET + 1
    found = []
    for entry in reversed(lineage.entries):
        found.append((entry, end_offset))
        end_offset = entry.start_offset
    return reversed(found)
