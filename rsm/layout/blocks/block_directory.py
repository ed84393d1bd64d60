"""Locates the bytes of a ledger's log in the blocks of a data object, and extracts them. Pure.

The log position and the entry id of a batch give its position in its block. Before the batch, a
block contains its header, an entry header for each batch up to this one, and the bytes of the
earlier batches. So a read can begin at any batch whose entry id and log position are known: at the
index object's log points, and at batches that earlier reads noted. If the log positions of both
ends of a batch are known, a read can begin within it, to skip the unwanted first bytes of a large
batch. A read may end too late, by one entry header for each further batch before the next log
point.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

from crc32c import crc32c

from rsm.layout.blocks.block_format import ENTRY_HEADER, ENTRY_HEADER_BYTES
from rsm.layout.blocks.log_points import LedgerExtent, LogPoint, LogPoints
from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    verify_crc,
)
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import ByteRange

_BATCH_LENGTH = struct.Struct(">8xi")
# An entry header, and the length, magic and CRC of a batch of version 2.
_FRONT = struct.Struct(">iq8xi4xbI")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBatch:
    """Represents a batch that is read without its entry header and first `left_out_bytes`."""

    left_out_bytes: int
    batch_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRun:
    """Represents the bytes to read from one block of a data object.

    `begin` is the first batch; the wanted part of the run ends at `end_log_position`. `block_end`
    is the first batch after the block. If `cut` is None, the run begins with an entry header;
    otherwise it begins within the first batch.
    """

    begin: LogPoint
    end_log_position: int
    block_end: LogPoint
    positions: ByteRange
    cut: CutBatch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSequence:
    """Represents consecutive batches; the first and the last may be cut. Call `cut` only once."""

    batches: list[memoryview]
    start_log_position: int
    last: LogPoint

    def cut(self, positions: ByteRange) -> list[memoryview]:
        """Return the bytes at these positions of the ledger's log."""
        pieces = self.batches
        end_position = positions.end_position - self.last.log_position
        pieces[-1] = pieces[-1][: max(end_position, 0)]
        # Several batches may precede the wanted position: skip those.
        before_bytes = positions.start_position - self.start_log_position
        for number, piece in enumerate(pieces):
            if len(piece) > before_bytes:
                return [piece[max(before_bytes, 0) :], *pieces[number + 1 :]]
            before_bytes -= len(piece)
        return []


class BlockDirectory:
    """Locates entries of one ledger in the data object `name`, which errors name. Immutable."""

    def __init__(
        self, extent: LedgerExtent, points: LogPoints, *, header_bytes: int, name: str
    ) -> None:
        self._blocks = extent.blocks
        self._header_bytes = header_bytes
        self._end = LogPoint(entry_id=extent.end_entry_id, log_position=extent.log_bytes)
        self._points = points
        self._name = name
        self._block_log_positions = [
            points.log_position_of(block.first_entry_id) for block in extent.blocks
        ]

    @property
    def log_bytes(self) -> int:
        return self._end.log_position

    def runs(self, positions: ByteRange, known: LogPoint | None = None) -> list[EntryRun]:
        """Return the runs to read for a range of the ledger's log, one for each block.

        `known` is a batch at or below the range's start, which an earlier read noted. It is ignored
        if it contradicts the log points.
        """
        begin = self._points.floor(positions.start_position)
        if known is not None and known.log_position > begin.log_position:
            # A damaged object can have more entries than the index. The read from the log point
            # then reports the corruption.
            following = self._points.ceiling(positions.start_position + 1) or self._end
            if begin.entry_id < known.entry_id < following.entry_id:
                begin = known
        runs: list[EntryRun] = []
        number = bisect_right(self._block_log_positions, begin.log_position) - 1
        while begin.log_position < positions.end_position:
            runs.append(self._run(number, begin, positions))
            number += 1
            if number == len(self._block_log_positions):
                break
            begin = LogPoint(
                entry_id=self._blocks[number].first_entry_id,
                log_position=self._block_log_positions[number],
            )
        return runs

    def batches(self, run: EntryRun, content: bytes) -> BatchSequence:
        """Return the batches of a run; the first and the last may be cut.

        Raises CorruptError for invalid entries or batches. Checks the CRC of each whole batch; the
        reader must check the CRC of a cut batch.
        """
        view, location, end = memoryview(content), 0, len(content)
        entry_id, log_position = run.begin.entry_id, run.begin.log_position
        end_entry_id, block_bytes_end = run.block_end.entry_id, run.block_end.log_position
        taken: list[memoryview] = []
        start_log_position, length_bytes = log_position, 0
        if run.cut is not None:
            length_bytes = run.cut.batch_bytes
            location = length_bytes - run.cut.left_out_bytes
            taken.append(view[:location])
            start_log_position += run.cut.left_out_bytes
            log_position += length_bytes
            entry_id += 1
        while log_position < run.end_log_position:
            batch = None
            if end - location >= _FRONT.size:
                # Nearly all batches have version 2, so this path unpacks them in place.
                length_bytes, found_id, rest_bytes, magic, crc = _FRONT.unpack_from(view, location)
                if (
                    found_id == entry_id < end_entry_id
                    and length_bytes == rest_bytes + LOG_OVERHEAD_BYTES
                    and HEADER_BYTES <= length_bytes <= block_bytes_end - log_position
                    and magic == 2
                ):
                    begin = location + ENTRY_HEADER_BYTES
                    batch = view[begin : begin + length_bytes]
                    if begin + length_bytes <= end and crc32c(batch[CRC_COVERED_FROM:]) != crc:
                        batch = None
            if batch is None:
                length_bytes, batch = self._checked(run, view, location, entry_id, log_position)
            taken.append(batch)
            location += ENTRY_HEADER_BYTES + length_bytes
            log_position += length_bytes
            entry_id += 1
        last = LogPoint(entry_id=entry_id - 1, log_position=log_position - length_bytes)
        return BatchSequence(batches=taken, start_log_position=start_log_position, last=last)

    def _run(self, number: int, begin: LogPoint, wanted: ByteRange) -> EntryRun:
        block_end = self._block_end(number)
        within = min(wanted.end_position, block_end.log_position)
        start_position = self._position(number, begin)
        cut = self._cut(begin, wanted, block_end)
        skipped_bytes = 0 if cut is None else ENTRY_HEADER_BYTES + cut.left_out_bytes
        # Each batch up to the next log point may add an entry header.
        following = self._points.ceiling(within)
        last = block_end if following is None else following
        entry_count = min(last.entry_id, block_end.entry_id) - begin.entry_id
        log_bytes = within - begin.log_position
        return EntryRun(
            begin=begin,
            end_log_position=within,
            block_end=block_end,
            positions=ByteRange(
                start_position=start_position + skipped_bytes,
                end_position=start_position + entry_count * ENTRY_HEADER_BYTES + log_bytes,
            ),
            cut=cut,
        )

    def _cut(self, begin: LogPoint, wanted: ByteRange, block_end: LogPoint) -> CutBatch | None:
        """Return how the batch at `begin` is cut; None if it must be read from its start."""
        left_out_bytes = wanted.start_position - begin.log_position
        if left_out_bytes <= 0:
            return None
        following = self._points.ceiling(wanted.start_position) or block_end
        if following.entry_id != begin.entry_id + 1:
            return None
        batch_bytes = following.log_position - begin.log_position
        return CutBatch(left_out_bytes=left_out_bytes, batch_bytes=batch_bytes)

    def _position(self, number: int, point: LogPoint) -> int:
        """Return the position of a batch's entry header in this block."""
        block = self._blocks[number]
        headers_bytes = (point.entry_id - block.first_entry_id) * ENTRY_HEADER_BYTES
        log_bytes = point.log_position - self._block_log_positions[number]
        return block.position + self._header_bytes + headers_bytes + log_bytes

    def _block_end(self, number: int) -> LogPoint:
        """Return the first batch after a block."""
        following = number + 1
        if following == len(self._block_log_positions):
            return self._end
        return LogPoint(
            entry_id=self._blocks[following].first_entry_id,
            log_position=self._block_log_positions[following],
        )

    def _checked(
        self, run: EntryRun, view: memoryview, location: int, entry_id: int, log_position: int
    ) -> tuple[int, memoryview]:
        """Check an entry of any version; return its length and its available bytes."""
        where = run.positions.start_position + location
        if len(view) - location <= ENTRY_HEADER_BYTES:
            raise self._corrupt("the entries end early", where, "an entry", "the end of the read")
        length_bytes, found_id = ENTRY_HEADER.unpack_from(view, location)
        left_bytes = run.block_end.log_position - log_position
        expected: object
        if not 0 < length_bytes <= left_bytes:
            expected = f"1..{left_bytes}"
            raise self._corrupt("the entry length is invalid", where, expected, length_bytes)
        if found_id != entry_id or entry_id >= run.block_end.entry_id:
            end_entry_id = run.block_end.entry_id
            expected = entry_id if entry_id < end_entry_id else f"< {end_entry_id}"
            raise self._corrupt("the entry id is wrong", where + 4, expected, found_id)
        begin = location + ENTRY_HEADER_BYTES
        batch = view[begin : begin + length_bytes]
        if len(batch) >= LOG_OVERHEAD_BYTES:
            (rest_bytes,) = _BATCH_LENGTH.unpack_from(batch)
            if rest_bytes + LOG_OVERHEAD_BYTES != length_bytes:
                expected = rest_bytes + LOG_OVERHEAD_BYTES
                raise self._corrupt(
                    "the content of an entry is not one batch", where, expected, length_bytes
                )
        if len(batch) == length_bytes:
            self._verify_crc(batch, where)
        return length_bytes, batch

    def _verify_crc(self, batch: memoryview, where: int) -> None:
        try:
            verify_crc(batch)
        except CorruptError as error:
            context = dict(error.context) | {"object": self._name, "position": where}
            raise CorruptError(error.message, **context) from error

    def _corrupt(self, message: str, at: int, expected: object, found: object) -> CorruptError:
        return CorruptError(message, object=self._name, position=at, expected=expected, found=found)
