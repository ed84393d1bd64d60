"""Builds indexes from a segment's batches, and checks given indexes against them.

A broker adds index entries for a batch if it appended more than `index.interval.bytes` between the
last entries and the batch. The offset entry contains the batch's last offset and its position. The
time entry contains the greatest timestamp so far, and the last offset of the first batch with that
timestamp. The broker omits it if the last entry's timestamp is not lower. A roll adds a last time
entry. The result is identical to the files of a broker that appended one batch at a time. Other
valid indexes differ: older brokers add at most one entry for an append of many batches, and a
restarted broker counts bytes from 0.
Source: org.apache.kafka.storage.internals.log.LogSegment (append, onBecomeInactiveSegment).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rsm.segment.batches.batch import NO_TIMESTAMP
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetIndex, TimeIndex

INDEX_INTERVAL_BYTES = 4096  # Kafka's index.interval.bytes
_MAX_RELATIVE_OFFSET = (1 << 31) - 1


class IndexedBatch(Protocol):
    """Represents the fields of a batch that an index needs, as in `BatchHeader`."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def max_timestamp_ms(self) -> int: ...

    @property
    def length_bytes(self) -> int:
        """Return the whole batch's size in the log."""


class IndexBuilder:
    """Builds the indexes of one segment from its batches, in order. Not thread-safe."""

    def __init__(
        self, *, base_offset: int, index_interval_bytes: int = INDEX_INTERVAL_BYTES
    ) -> None:
        self._base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._offset_entries = bytearray()
        self._time_entries = bytearray()
        self._last_time_entry_ms = NO_TIMESTAMP
        self._max_timestamp_ms = NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._bytes_since_last_entry = 0
        self._position = 0

    def append(self, header: IndexedBatch) -> None:
        """Add the next batch.

        Raises CorruptError if its last offset is too far from the base offset, or below it.
        """
        last_offset = header.last_offset
        relative = last_offset - self._base_offset
        if not 0 <= relative <= _MAX_RELATIVE_OFFSET:
            expected = f"{self._base_offset} + 0..{_MAX_RELATIVE_OFFSET}"
            raise CorruptError(
                "the offset is not in the segment", expected=expected, found=last_offset
            )
        if header.max_timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms = header.max_timestamp_ms
            self._offset_of_max_timestamp = last_offset
        if self._bytes_since_last_entry > self._index_interval_bytes:
            self._offset_entries += OFFSET_ENTRY.pack(relative, self._position)
            self._last_time_entry_ms, entry = self._next_time_entry()
            self._time_entries += entry
            self._bytes_since_last_entry = 0
        self._bytes_since_last_entry += header.length_bytes
        self._position += header.length_bytes

    def offset_index(self) -> OffsetIndex:
        """Return the offset index of the batches so far."""
        return OffsetIndex(base_offset=self._base_offset, data=bytes(self._offset_entries))

    def time_index(self) -> TimeIndex:
        """Return the time index of the batches so far, with the last entry that a roll adds."""
        _, entry = self._next_time_entry()
        return TimeIndex(base_offset=self._base_offset, data=bytes(self._time_entries) + entry)

    def _next_time_entry(self) -> tuple[int, bytes]:
        if self._max_timestamp_ms <= self._last_time_entry_ms:
            return self._last_time_entry_ms, b""
        relative = self._offset_of_max_timestamp - self._base_offset
        return self._max_timestamp_ms, TIME_ENTRY.pack(self._max_timestamp_ms, relative)


def matches_log(
    offset_index: OffsetIndex, time_index: TimeIndex, batches: Iterable[IndexedBatch]
) -> bool:
    """Return whether the indexes of a rolled segment match all of its `batches`, in order.

    They match if no lookup leads past the batch that it should find. Each position must be the
    start of a batch whose base offset is not above the entry's offset. Each time entry must name
    the first batch with the entry's timestamp or a later one, and the last entry must contain the
    maximum. The density of entries does not matter.
    """
    checker = IndexChecker(offset_index, time_index)
    for header in batches:
        checker.append(header)
    return checker.matches()


class IndexChecker:
    """Makes the check of `matches_log`, one batch at a time. Not thread-safe."""

    def __init__(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        self._offset_entries = offset_index.entries()
        self._time_entries = time_index.entries()
        self._next_offset_entry = next(self._offset_entries, None)
        self._next_time_entry = next(self._time_entries, None)
        self._last_time_entry_ms = NO_TIMESTAMP
        self._max_timestamp_ms = NO_TIMESTAMP
        self._position = 0
        self._agrees = True

    def append(self, header: IndexedBatch) -> None:
        """Check the next batch of the segment."""
        self._check_offset_entry(header)
        self._check_time_entry(header)
        self._max_timestamp_ms = max(self._max_timestamp_ms, header.max_timestamp_ms)
        self._position += header.length_bytes

    def matches(self) -> bool:
        """Return whether the indexes match. Call it after all batches of the segment."""
        leftover = self._next_offset_entry is not None or self._next_time_entry is not None
        complete = self._last_time_entry_ms == self._max_timestamp_ms
        return self._agrees and complete and not leftover

    def _check_offset_entry(self, header: IndexedBatch) -> None:
        entry = self._next_offset_entry
        if entry is None or entry.position > self._position:
            return
        # An append of many batches has one entry: its first batch's position, its last offset.
        self._agrees &= entry.position == self._position and entry.offset >= header.base_offset
        self._next_offset_entry = next(self._offset_entries, None)

    def _check_time_entry(self, header: IndexedBatch) -> None:
        entry = self._next_time_entry
        if entry is None or entry.offset > header.last_offset:
            return
        reached_first = self._max_timestamp_ms < entry.timestamp_ms == header.max_timestamp_ms
        self._agrees &= reached_first and entry.offset >= header.base_offset
        self._last_time_entry_ms = entry.timestamp_ms
        self._next_time_entry = next(self._time_entries, None)
