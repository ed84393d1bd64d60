"""Represents the three indexes of a log segment, and converts them to and from file content.

Defines their entries and lookups. Parsing checks the entries against the segment's bounds. This
module does not know the log: `index_builder` checks whether an index matches it. All fields are
big-endian; relative offsets count from the segment's base offset:

    .index      relative offset i32, position i32
    .timeindex  timestamp i64, relative offset i32
    .txnindex   version i16 = 0, producer id i64, first, last and last stable offset i64 each

Source: org.apache.kafka.storage.internals.log.OffsetIndex, TimeIndex, AbortedTxn.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.ranges import OffsetRange

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
TRANSACTION_ENTRY = struct.Struct(">hqqqq")
_TRANSACTION_VERSION = 0


def cut_preallocated(data: bytes, *, entry_bytes: int) -> bytes:
    """Return the index without the all-zero entries at the end of an active segment's file.

    Call it only for an active segment: in a rolled segment's file, an all-zero entry at the end can
    be valid (timestamp 0 at the base offset).
    """
    used = len(data.rstrip(b"\x00"))
    return data[: -(-used // entry_bytes) * entry_bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetIndexEntry:
    """Represents an index entry: offsets >= `offset` are at or after `position` in the log."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetIndex:
    """Represents the index that gives the position to read from for an offset.

    `data` contains the file's bytes.
    """

    base_offset: int
    data: bytes = b""

    @classmethod
    def parse(cls, data: bytes, *, offsets: OffsetRange, log_bytes: int) -> Self:
        """Parse the index of a segment with `offsets` and a log of `log_bytes`.

        Raises CorruptError if offsets or positions do not ascend strictly, or are out of bounds.
        """
        _require_whole_entries("offset index", data, OFFSET_ENTRY)
        index = cls(base_offset=offsets.start_offset, data=data)
        before = OffsetIndexEntry(offset=offsets.start_offset - 1, position=-1)
        for number, entry in enumerate(index.entries()):
            if not before.offset < entry.offset < offsets.end_offset:
                expected = f"{before.offset + 1}..{offsets.last_offset}"
                raise _misplaced("offset index", number, "offset", expected, entry.offset)
            if not before.position < entry.position < log_bytes:
                expected = f"{before.position + 1}..{log_bytes - 1}"
                raise _misplaced("offset index", number, "position", expected, entry.position)
            before = entry
        return index

    def __len__(self) -> int:
        return len(self.data) // OFFSET_ENTRY.size

    def entries(self) -> Iterator[OffsetIndexEntry]:
        for relative, position in OFFSET_ENTRY.iter_unpack(self.data):
            yield OffsetIndexEntry(offset=self.base_offset + relative, position=position)

    def lookup(self, offset: int) -> OffsetIndexEntry:
        """Return the last entry at or below `offset`; the segment's start if there is none."""
        relative = offset - self.base_offset
        following = bisect_right(range(len(self)), relative, key=self._relative_offset)
        if not following:
            return OffsetIndexEntry(offset=self.base_offset, position=0)
        found, position = OFFSET_ENTRY.unpack_from(self.data, (following - 1) * OFFSET_ENTRY.size)
        return OffsetIndexEntry(offset=self.base_offset + found, position=position)

    def following(self, offset: int) -> OffsetIndexEntry | None:
        """Return the first entry above `offset`; None if there is none.

        The batch of `offset` is the batch of that entry, or an earlier one.
        """
        number = bisect_right(
            range(len(self)), offset - self.base_offset, key=self._relative_offset
        )
        if number >= len(self):
            return None
        found, position = OFFSET_ENTRY.unpack_from(self.data, number * OFFSET_ENTRY.size)
        return OffsetIndexEntry(offset=self.base_offset + found, position=position)

    def end_position(self, offset: int) -> int | None:
        """Return an upper bound for the end of `offset`'s batch; None means the log's end.

        The batch begins at or before the entry `following` the offset, and ends at or before the
        next one.
        """
        relative = offset - self.base_offset
        number = bisect_right(range(len(self)), relative, key=self._relative_offset) + 1
        if number >= len(self):
            return None
        position: int = OFFSET_ENTRY.unpack_from(self.data, number * OFFSET_ENTRY.size)[1]
        return position

    def to_bytes(self) -> bytes:
        return self.data

    def _relative_offset(self, number: int) -> int:
        relative: int = OFFSET_ENTRY.unpack_from(self.data, number * OFFSET_ENTRY.size)[0]
        return relative


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeIndexEntry:
    """Represents an index entry: `offset` is in the first batch that reaches `timestamp_ms`."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeIndex:
    """Represents the index that gives the offset to search from for a timestamp.

    `data` contains the file's bytes.
    """

    base_offset: int
    data: bytes = b""

    @classmethod
    def parse(cls, data: bytes, *, offsets: OffsetRange) -> Self:
        """Parse the time index of a segment with `offsets`.

        Raises CorruptError if timestamps do not ascend strictly, or if offsets descend or are out
        of bounds.
        """
        _require_whole_entries("time index", data, TIME_ENTRY)
        index = cls(base_offset=offsets.start_offset, data=data)
        before = TimeIndexEntry(timestamp_ms=-1, offset=offsets.start_offset)
        for number, entry in enumerate(index.entries()):
            if entry.timestamp_ms <= before.timestamp_ms:
                expected = f"> {before.timestamp_ms}"
                raise _misplaced("time index", number, "timestamp", expected, entry.timestamp_ms)
            if not before.offset <= entry.offset < offsets.end_offset:
                expected = f"{before.offset}..{offsets.last_offset}"
                raise _misplaced("time index", number, "offset", expected, entry.offset)
            before = entry
        return index

    def __len__(self) -> int:
        return len(self.data) // TIME_ENTRY.size

    def entries(self) -> Iterator[TimeIndexEntry]:
        for timestamp_ms, relative in TIME_ENTRY.iter_unpack(self.data):
            yield TimeIndexEntry(timestamp_ms=timestamp_ms, offset=self.base_offset + relative)

    def lookup(self, timestamp_ms: int) -> TimeIndexEntry:
        """Return the last entry at or below `timestamp_ms`; (-1, base offset) if there is none."""
        following = bisect_right(range(len(self)), timestamp_ms, key=self._timestamp_ms)
        if not following:
            return TimeIndexEntry(timestamp_ms=-1, offset=self.base_offset)
        found, relative = TIME_ENTRY.unpack_from(self.data, (following - 1) * TIME_ENTRY.size)
        return TimeIndexEntry(timestamp_ms=found, offset=self.base_offset + relative)

    def to_bytes(self) -> bytes:
        return self.data

    def _timestamp_ms(self, number: int) -> int:
        timestamp_ms: int = TIME_ENTRY.unpack_from(self.data, number * TIME_ENTRY.size)[0]
        return timestamp_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionIndex:
    """Represents the transactions whose abort markers are in the segment, in marker order."""

    transactions: tuple[AbortedTransaction, ...] = ()

    @classmethod
    def parse(cls, data: bytes, *, offsets: OffsetRange) -> Self:
        """Parse the transaction index of a segment with `offsets`.

        A transaction may begin in an earlier segment. Raises CorruptError if a transaction is
        invalid or ends outside this segment, or if the ends do not ascend. Raises UnsupportedError
        for an unknown entry version.
        """
        _require_whole_entries("transaction index", data, TRANSACTION_ENTRY)
        transactions: list[AbortedTransaction] = []
        for version, producer_id, first, last, stable in TRANSACTION_ENTRY.iter_unpack(data):
            if version != _TRANSACTION_VERSION:
                raise UnsupportedError(
                    "the version of the transaction index is unknown", version=version
                )
            if not 0 <= first <= last or last not in offsets or producer_id < 0 or stable < 0:
                found = f"producer {producer_id}, offsets {first}..{last}, stable {stable}"
                raise _misplaced(
                    "transaction index", len(transactions), "transaction", str(offsets), found
                )
            transactions.append(
                AbortedTransaction(
                    producer_id=producer_id,
                    first_offset=first,
                    last_offset=last,
                    last_stable_offset=stable,
                )
            )
        for number, (before, after) in enumerate(pairwise(transactions), start=1):
            if after.last_offset <= before.last_offset:
                expected, found = f"> {before.last_offset}", str(after.last_offset)
                raise _misplaced("transaction index", number, "last offset", expected, found)
        return cls(transactions=tuple(transactions))

    def overlapping(self, offsets: OffsetRange) -> tuple[AbortedTransaction, ...]:
        """Return the aborted transactions that overlap `offsets`, also outside the segment."""
        return tuple(
            each
            for each in self.transactions
            if each.first_offset < offsets.end_offset and each.last_offset >= offsets.start_offset
        )

    def to_bytes(self) -> bytes:
        return b"".join(
            TRANSACTION_ENTRY.pack(
                _TRANSACTION_VERSION,
                each.producer_id,
                each.first_offset,
                each.last_offset,
                each.last_stable_offset,
            )
            for each in self.transactions
        )


def _require_whole_entries(index: str, data: bytes, entry: struct.Struct) -> None:
    if len(data) % entry.size:
        expected = f"a multiple of {entry.size}"
        raise CorruptError(
            "the index ends within an entry", index=index, expected=expected, found=len(data)
        )


def _misplaced(index: str, number: int, field: str, expected: str, found: object) -> CorruptError:
    return CorruptError(
        "an index entry is out of order or out of bounds",
        index=index,
        entry=number,
        field=field,
        expected=expected,
        found=found,
    )
