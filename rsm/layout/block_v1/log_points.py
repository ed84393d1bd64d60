"""LogPoints: the positions of some of a log segment's batches in its ledger.

Entry ids are ordinals without relation to offsets or log positions. So the index object of a
segment carries points with both, in addition to Pulsar's fields. The first batch of each block is a
point, and one batch at least every 128 KiB of log. They are in the ledger metadata's custom field
`kafka-rlm.log-points.v1`, as i64, i64, i64, big-endian, per point:

    entry id    position in the log    base offset

All three ascend. Other readers ignore the field. Pure.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from rsm.layout.block_v1.block_index import BlockIndex
from rsm.segment.errors import CorruptError

CUSTOM_KEY = "kafka-rlm.log-points.v1"
SPACING_BYTES = 128 << 10

_POINT = struct.Struct(">qqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPoint:
    """The entry id and the log position of a batch."""

    entry_id: int
    log_position: int


class LogPointsBuilder:
    """Encodes the batches that are log points, in order. Not thread-safe."""

    def __init__(self) -> None:
        self._encoded = bytearray()

    def add(self, entry_id: int, log_position: int, base_offset: int) -> int:
        """Add a batch; return the log position at which the next one is due."""
        self._encoded += _POINT.pack(entry_id, log_position, base_offset)
        return log_position + SPACING_BYTES

    def encode(self) -> bytes:
        return bytes(self._encoded)


class LogPoints:
    """The points of one segment. Immutable. Memory: 16 bytes for each point."""

    def __init__(self, entry_ids: array[int], log_positions: array[int]) -> None:
        self._entry_ids = entry_ids
        self._log_positions = log_positions

    @classmethod
    def of(cls, index: BlockIndex, *, name: str) -> LogPoints:
        """Decode the points of an index object.

        Raises CorruptError if there are none, if they do not ascend, or if a block's first entry
        is missing.
        """
        encoded = index.metadata.custom_value(CUSTOM_KEY)
        if encoded is None or not encoded or len(encoded) % _POINT.size:
            found = "nothing" if encoded is None else f"{len(encoded)} bytes"
            raise _corrupt("no log points", name, f"{_POINT.size} bytes for each", found)
        entry_ids, log_positions = array("q"), array("q")
        for entry_id, log_position, _ in _POINT.iter_unpack(encoded):
            if entry_ids and (entry_id <= entry_ids[-1] or log_position <= log_positions[-1]):
                expected = f"> entry {entry_ids[-1]} at {log_positions[-1]}"
                found = f"entry {entry_id} at {log_position}"
                raise _corrupt("log points do not ascend", name, expected, found)
            entry_ids.append(entry_id)
            log_positions.append(log_position)
        points = cls(entry_ids, log_positions)
        points._check(index, name)
        return points

    def floor(self, log_position: int) -> LogPoint:
        """Return the last point at or below a position of the log."""
        return self._at(bisect_right(self._log_positions, log_position) - 1)

    def ceiling(self, log_position: int) -> LogPoint | None:
        """Return the first point at or above a position of the log."""
        number = bisect_left(self._log_positions, log_position)
        return self._at(number) if number < len(self._entry_ids) else None

    def log_position_of(self, entry_id: int) -> int:
        """Return the log position of an entry that is a point, as the first of each block is."""
        return self._log_positions[bisect_left(self._entry_ids, entry_id)]

    def _at(self, number: int) -> LogPoint:
        return LogPoint(entry_id=self._entry_ids[number], log_position=self._log_positions[number])

    def _check(self, index: BlockIndex, name: str) -> None:
        if (self._entry_ids[0], self._log_positions[0]) != (0, 0):
            found = f"entry {self._entry_ids[0]} at {self._log_positions[0]}"
            raise _corrupt("first log point", name, "entry 0 at 0", found)
        last_position = self._log_positions[-1]
        if (
            self._entry_ids[-1] > index.last_entry_id
            or last_position >= index.metadata.length_bytes
        ):
            expected = f"<= entry {index.last_entry_id}, < {index.metadata.length_bytes}"
            found = f"entry {self._entry_ids[-1]} at {last_position}"
            raise _corrupt("log point beyond the log", name, expected, found)
        for block in index.blocks:
            number = bisect_left(self._entry_ids, block.first_entry_id)
            if number == len(self._entry_ids) or self._entry_ids[number] != block.first_entry_id:
                raise _corrupt("block without a log point", name, block.first_entry_id, "none")


def _corrupt(message: str, name: str, expected: object, found: object) -> CorruptError:
    return CorruptError(message, object=name, position=32, expected=expected, found=found)
