"""Locates the bytes of a log that consists of the ledgers of one data object. Pure.

In format v1, a log is one ledger. In v2, it is one or several ledgers, one after the other, each
with its own entry ids.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from rsm.layout.blocks.block_directory import BlockDirectory, EntryRun
from rsm.layout.blocks.block_objects import BlockObjects
from rsm.layout.blocks.log_points import LogPoint
from rsm.layout.segment_layout import LocatedBytes, ObjectRange, SegmentObjects
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange

# For reads of at least this length, the ranges do not depend on noted positions, so that repeated
# reads hit caches of ranges. Noted positions would save less than an eighth of such a read.
_SAME_RANGES_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extract:
    """One run to read, and the wanted positions of its ledger's log."""

    ledger: BlockDirectory
    log_start_position: int
    run: EntryRun
    positions: ByteRange


class LogDirectory:
    """Represents a decoded index object; the ledgers are in the order of the log. Immutable."""

    def __init__(self, ledgers: Sequence[BlockDirectory], *, data_bytes: int) -> None:
        self.ledgers = tuple(ledgers)
        self._starts = [0, *accumulate(ledger.log_bytes for ledger in ledgers)]
        self.data_bytes = data_bytes

    @property
    def log_bytes(self) -> int:
        return self._starts[-1]

    def locate(self, positions: ByteRange, key: str, objects: SegmentObjects) -> LocatedBytes:
        """Locate `positions`, a range within the log, in the data object `key`."""
        known = (
            objects.floor(key, positions.start_position)
            if len(positions) < _SAME_RANGES_BYTES
            else None
        )
        extracts = self._extracts(positions, known)
        return LocatedBytes(
            ranges=tuple(ObjectRange(key=key, positions=each.run.positions) for each in extracts),
            join=partial(_join, extracts, partial(objects.note, key)),
        )

    def _extracts(self, positions: ByteRange, known: tuple[int, int] | None) -> list[_Extract]:
        extracts: list[_Extract] = []
        number = bisect_right(self._starts, positions.start_position) - 1
        while number < len(self.ledgers) and self._starts[number] < positions.end_position:
            ledger, start = self.ledgers[number], self._starts[number]
            within = ByteRange(
                start_position=max(positions.start_position - start, 0),
                end_position=min(positions.end_position - start, ledger.log_bytes),
            )
            noted = None
            if known is not None and known[0] >= start:
                noted = LogPoint(log_position=known[0] - start, entry_id=known[1])
            extracts += [
                _Extract(ledger=ledger, log_start_position=start, run=run, positions=within)
                for run in ledger.runs(within, noted)
            ]
            number, known = number + 1, None
        return extracts


def locate_log(
    metadata: RemoteLogSegmentMetadata,
    positions: ByteRange,
    objects: SegmentObjects,
    decode: Callable[[bytes, str, str], LogDirectory],
) -> LocatedBytes:
    """Locate the bytes at `positions` of a segment in blocks; cut them at the segment's end.

    `decode` decodes the index object; its arguments are the content, and the names of the data
    object and of the index object. Raises CorruptError, and the errors of `decode` and `objects`.
    """
    end_position = min(positions.end_position, metadata.segment_size_bytes)
    if positions.start_position >= end_position:
        return LocatedBytes(ranges=())
    parts = BlockObjects.of(metadata, metadata.layout)
    key = parts.data.key
    directory = objects.decoded(parts.index, lambda content: decode(content, key, parts.index.key))
    _require_same_log(metadata, parts, directory)
    within = ByteRange(start_position=positions.start_position, end_position=end_position)
    return directory.locate(within, key, objects)


def _join(
    extracts: Sequence[_Extract], note: Callable[[int, int], None], pieces: Sequence[bytes]
) -> bytes:
    """Return the log's bytes; note where a sequential read continues."""
    taken: list[memoryview] = []
    for each, piece in zip(extracts, pieces, strict=True):
        batches = each.ledger.batches(each.run, piece)
        taken.extend(batches.cut(each.positions))
        note(each.log_start_position + batches.last.log_position, batches.last.entry_id)
    return b"".join(taken)


def _require_same_log(
    metadata: RemoteLogSegmentMetadata, parts: BlockObjects, directory: LogDirectory
) -> None:
    found = (directory.log_bytes, directory.data_bytes)
    expected = (metadata.segment_size_bytes, parts.data.length_bytes)
    if found != (expected[0], found[1] if expected[1] is None else expected[1]):
        raise CorruptError(
            "the index belongs to another segment",
            object=parts.index.key,
            position=0,
            expected=expected,
            found=found,
        )
