"""Represents the cache's entry of a segment: its newest accepted record, and all record ids. Pure.

The entry keeps the record's value as it was read, so that a fold never decodes the metadata in it.
Separate fields contain the values that the fold and the indexes need. In bytes:

| field | type |
|---|---|
| state (0: nothing accepted), dead-lettered, has a transaction index | u8 each |
| base offset, end offset, size in bytes | i64 each |
| time and copy deadline, ms | i64, i64 |
| metadata partition and offset of the newest accepted record | i32, i64 |
| number of epochs, number of records | u32, u32 |
| epochs: epoch, start offset | i32, i64 each |
| records in log order: accepted, event id | u8, 16 bytes each |
| value of the newest accepted record | the rest |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import NamedTuple

from rsm.segment.epochs import EpochEntry
from rsm.segment.metadata import SegmentState

_HEADER = Struct(">BBBqqqqqiqII")
_PART = Struct(">B2x8xq8x8x8x4x8xI")  # from a header: state, end offset, number of epochs
_COUNTS = Struct(">55xII")  # from a header: numbers of epochs and of records
_EPOCH = Struct(">iq")
_COVERED_EPOCH = Struct(">i")  # the prefix of an _EPOCH
_RECORD_BYTES = 17
ACCEPTED = b"\x01"
REFUSED = b"\x00"
_STATES = {state.value: state for state in SegmentState}
_STATE_NUMBERS: Mapping[SegmentState | None, int] = {None: 0, **{s: s.value for s in SegmentState}}

_FINISHED_NUMBER = SegmentState.COPY_SEGMENT_FINISHED.value


class SegmentEntry(NamedTuple):
    """The entry of a segment in any state.

    `state` is None if no record was accepted, or if a tombstone erased the segment. The module
    describes the encoding of `epochs` and `records`; `value` is an encoded MetadataEvent.
    """

    records: bytes
    state: SegmentState | None = None
    is_dead_lettered: bool = False
    base_offset: int = 0
    end_offset: int = 0
    size_bytes: int = 0
    has_transaction_index: bool = False
    changed_ms: int = 0
    copy_deadline_ms: int = 0
    metadata_partition: int = -1
    metadata_offset: int = -1
    epochs: bytes = b""
    value: bytes = b""

    def to_bytes(self) -> bytes:
        (
            records,
            state,
            is_dead_lettered,
            base_offset,
            end_offset,
            size_bytes,
            has_transaction_index,
            changed_ms,
            copy_deadline_ms,
            metadata_partition,
            metadata_offset,
            epochs,
            value,
        ) = self
        header = _HEADER.pack(
            _STATE_NUMBERS[state],
            is_dead_lettered,
            has_transaction_index,
            base_offset,
            end_offset,
            size_bytes,
            changed_ms,
            copy_deadline_ms,
            metadata_partition,
            metadata_offset,
            len(epochs) // _EPOCH.size,
            len(records) // _RECORD_BYTES,
        )
        return b"".join((header, epochs, records, value))

    @classmethod
    def from_bytes(cls, data: bytes) -> SegmentEntry:
        """Decode the bytes of `to_bytes`."""
        (
            state,
            is_dead_lettered,
            has_transaction_index,
            base_offset,
            end_offset,
            size_bytes,
            changed_ms,
            copy_deadline_ms,
            metadata_partition,
            metadata_offset,
            epoch_count,
            record_count,
        ) = _HEADER.unpack_from(data)
        epochs_end = _HEADER.size + epoch_count * _EPOCH.size
        records_end = epochs_end + record_count * _RECORD_BYTES
        return cls(
            records=data[epochs_end:records_end],
            state=_STATES.get(state),
            is_dead_lettered=bool(is_dead_lettered),
            base_offset=base_offset,
            end_offset=end_offset,
            size_bytes=size_bytes,
            has_transaction_index=bool(has_transaction_index),
            changed_ms=changed_ms,
            copy_deadline_ms=copy_deadline_ms,
            metadata_partition=metadata_partition,
            metadata_offset=metadata_offset,
            epochs=data[_HEADER.size : epochs_end],
            value=data[records_end:],
        )

    def lineage(self) -> tuple[EpochEntry, ...]:
        """Decode `epochs`."""
        return tuple(
            EpochEntry(epoch=epoch, start_offset=start_offset)
            for epoch, start_offset in _EPOCH.iter_unpack(self.epochs)
        )

    def epoch_ranges(self) -> list[tuple[int, int, int]]:
        """Return (epoch, start offset, end offset) for each epoch with records in the segment."""
        end_offset = self.end_offset
        ranges = []
        for epoch, start_offset in reversed(list(_EPOCH.iter_unpack(self.epochs))):
            if start_offset < end_offset:
                ranges.append((epoch, start_offset, end_offset))
            end_offset = start_offset
        return ranges[::-1]

    def covered_epochs(self) -> list[bytes]:
        """Return the epochs with records in the segment, as `pack_covered_epoch` encodes them."""
        epochs = self.epochs
        if len(epochs) == _EPOCH.size:
            return [epochs[: _COVERED_EPOCH.size]]  # Nearly all segments have one epoch.
        return [pack_covered_epoch(epoch) for epoch, _, _ in self.epoch_ranges()]

    def event_ids(self, *, accepted: bool) -> tuple[bytes, ...]:
        """Return the ids of the accepted records, or of the refused ones, in log order."""
        flag = int(accepted)
        data = self.records
        starts = range(0, len(data), _RECORD_BYTES)
        return tuple(data[s + 1 : s + _RECORD_BYTES] for s in starts if data[s] == flag)

    def without_record(self, event_id: bytes) -> bytes:
        """Return `records` without the record with this id."""
        data = self.records
        records = (data[s : s + _RECORD_BYTES] for s in range(0, len(data), _RECORD_BYTES))
        return b"".join(record for record in records if record[1:] != event_id)


def finished_part(data: bytes, leader_epoch: int) -> tuple[int, int] | None:
    """Return the start and end offset of an epoch's part of a segment, from the entry's bytes.

    Returns None if the segment is not finished, or has no records of the epoch.
    """
    state, end_offset, epoch_count = _PART.unpack_from(data)
    if state != _FINISHED_NUMBER:
        return None
    position = _HEADER.size + epoch_count * _EPOCH.size
    while position > _HEADER.size:
        position -= _EPOCH.size
        epoch, start_offset = _EPOCH.unpack_from(data, position)
        if epoch == leader_epoch and start_offset < end_offset:
            return start_offset, end_offset
        end_offset = start_offset
    return None


def entry_state(data: bytes) -> SegmentState | None:
    """Decode only the state in an entry's bytes."""
    return _STATES.get(data[0])


def entry_value(data: bytes) -> bytes:
    """Return the `value` in an entry's bytes, without decoding other fields."""
    epoch_count, record_count = _COUNTS.unpack_from(data)
    return data[_HEADER.size + epoch_count * _EPOCH.size + record_count * _RECORD_BYTES :]


_EntryFields = tuple[
    bytes, SegmentState | None, bool, int, int, int, bool, int, int, int, int, bytes, bytes
]
new_entry: Callable[[_EntryFields], SegmentEntry] = partial(tuple.__new__, SegmentEntry)
"""Builds an entry from all its fields in order; takes half the time of the constructor."""

pack_epoch = _EPOCH.pack
"""Encodes an epoch and its start offset for `SegmentEntry.epochs`."""

pack_covered_epoch = _COVERED_EPOCH.pack
"""Encodes an epoch as in the result of `SegmentEntry.covered_epochs`."""


def with_record(before: SegmentEntry | None, flag: bytes, event_id: bytes) -> bytes:
    """Return the `records` of an entry, if any, plus one; `flag` is ACCEPTED or REFUSED."""
    return before.records + flag + event_id if before else flag + event_id
