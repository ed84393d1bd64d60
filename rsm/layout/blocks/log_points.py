"""Encodes and looks up log points: the positions of some of a ledger's batches in its log. Pure.

An entry id is an ordinal; it does not depend on offsets or log positions. So the index object of a
ledger has log points in addition to Pulsar's fields. The first batch of each block is a point, and
so is the first batch 128 KiB or more after the last point. The points have the key
`kafka-rlm.log-points.v1`. In v1 the key is a custom field of the ledger's metadata. In v2 it is a
property of the ledger's info, and the points are in base64. Each point is i64, i64, i64,
big-endian:

    entry id    position in the ledger's log    base offset

All three ascend from point to point. Other readers ignore the key.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rsm.layout.blocks.block_sequence import IndexedBlock, corrupt_index
from rsm.segment.errors import CorruptError

CUSTOM_KEY = "kafka-rlm.log-points.v1"
SPACING_BYTES = 128 << 10

_POINT = struct.Struct(">qqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPoint:
    """Represents the entry id and the log position of a batch."""

    entry_id: int
    log_position: int


class LogPointsBuilder:
    """Encodes the log points of one ledger, which are added in order. Not thread-safe."""

    def __init__(self) -> None:
        self._encoded = bytearray()

    def add(self, entry_id: int, log_position: int, base_offset: int) -> int:
        """Add a batch as a point; return the log position at which the next point is due."""
        self._encoded += _POINT.pack(entry_id, log_position, base_offset)
        return log_position + SPACING_BYTES

    def encode(self) -> bytes:
        return bytes(self._encoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerExtent:
    """Represents the part of a ledger in one data object: its blocks and its end.

    `index_position` is the position of the ledger's metadata in the index object `index_name`.
    """

    blocks: Sequence[IndexedBlock]
    end_entry_id: int
    log_bytes: int
    index_name: str
    index_position: int

    def corrupt(self, message: str, expected: object, found: object) -> CorruptError:
        """Return the error for invalid metadata in the index object."""
        return corrupt_index(message, self.index_name, self.index_position, expected, found)


class LogPoints:
    """Represents the log points of one ledger. Immutable. Memory: 16 bytes for each point."""

    def __init__(self, entry_ids: array[int], log_positions: array[int]) -> None:
        self._entry_ids = entry_ids
        self._log_positions = log_positions

    @classmethod
    def decode(cls, encoded: bytes | None, of: LedgerExtent) -> LogPoints:
        """Decode the log points of an index object; `encoded` is None if the object lacks them.

        Raises CorruptError if the points are missing or truncated, do not ascend, do not begin at
        the log's start, exceed the log's end, or lack the first entry of a block.
        """
        if not encoded or len(encoded) % _POINT.size:
            found = "nothing" if encoded is None else f"{len(encoded)} bytes"
            message = "the log points are missing or truncated"
            raise of.corrupt(message, f"a multiple of {_POINT.size} bytes", found)
        entry_ids, log_positions = array("q"), array("q")
        for entry_id, log_position, _ in _POINT.iter_unpack(encoded):
            if entry_ids and (entry_id <= entry_ids[-1] or log_position <= log_positions[-1]):
                expected = f"> entry {entry_ids[-1]} at {log_positions[-1]}"
                found = f"entry {entry_id} at {log_position}"
                raise of.corrupt("the log points do not ascend", expected, found)
            entry_ids.append(entry_id)
            log_positions.append(log_position)
        points = cls(entry_ids, log_positions)
        points._check(of)
        return points

    def floor(self, log_position: int) -> LogPoint:
        """Return the last point at or below a position of the log."""
        return self._at(bisect_right(self._log_positions, log_position) - 1)

    def ceiling(self, log_position: int) -> LogPoint | None:
        """Return the first point at or above a position of the log."""
        number = bisect_left(self._log_positions, log_position)
        return self._at(number) if number < len(self._entry_ids) else None

    def log_position_of(self, entry_id: int) -> int:
        """Return the log position of an entry that is a point, such as the first of a block."""
        return self._log_positions[bisect_left(self._entry_ids, entry_id)]

    def _at(self, number: int) -> LogPoint:
        return LogPoint(entry_id=self._entry_ids[number], log_position=self._log_positions[number])

    def _check(self, of: LedgerExtent) -> None:
        first_entry_id = of.blocks[0].first_entry_id
        if (self._entry_ids[0], self._log_positions[0]) != (first_entry_id, 0):
            found = f"entry {self._entry_ids[0]} at {self._log_positions[0]}"
            expected = f"entry {first_entry_id} at 0"
            raise of.corrupt("the first log point is not at the log's start", expected, found)
        if self._entry_ids[-1] >= of.end_entry_id or self._log_positions[-1] >= of.log_bytes:
            expected = f"< entry {of.end_entry_id}, < {of.log_bytes}"
            found = f"entry {self._entry_ids[-1]} at {self._log_positions[-1]}"
            raise of.corrupt("a log point is beyond the log's end", expected, found)
        for block in of.blocks:
            number = bisect_left(self._entry_ids, block.first_entry_id)
            if number == len(self._entry_ids) or self._entry_ids[number] != block.first_entry_id:
                raise of.corrupt("a block has no log point", block.first_entry_id, "none")
