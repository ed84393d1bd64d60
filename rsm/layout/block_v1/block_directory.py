"""Where the bytes of a log lie in a data object in block format v1, and how they come out of it.

The log position of a batch and its entry id tell its place: in its block, in front of it, are the
block's header, the entry headers up to its own, and the block's bytes of log up to its own. So any
batch whose number is known is a place to begin at: those are the index object's log points, and
what reads before have come by. Where both ends of a batch are such places, a read begins within it:
what is in front, up to a megabyte of a busy producer's batch, is not read. How far to read is known
to within the entry headers between two points. Pure.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

from crc32c import crc32c

from rsm.layout.block_v1.block_format import ENTRY_HEADER, ENTRY_HEADER_BYTES
from rsm.layout.block_v1.block_index import BlockIndex, decode_index
from rsm.layout.block_v1.log_points import LogPoint, LogPoints
from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    verify_crc,
)
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import ByteRange

_BATCH_LENGTH = struct.Struct(">8xi")
# An entry's header, and of its batch the length, magic and CRC of version 2.
_FRONT = struct.Struct(">iq8xi4xbI")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBatch:
    """A batch of `batch_bytes` whose entry header and first `left_out_bytes` are not read."""

    left_out_bytes: int
    batch_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRun:
    """Bytes of a data object in one block, that begin with an entry header or within a batch.

    `begin` is the first batch; what is wanted of the run ends at `end_log_position`. The block ends
    with the batch in front of `block_end`. With `cut`, the run begins within the first batch.
    """

    begin: LogPoint
    end_log_position: int
    block_end: LogPoint
    positions: ByteRange
    cut: CutBatch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSequence:
    """Batches one behind the other from a position on to `last`, which may be cut. Of one use."""

    batches: list[memoryview]
    start_log_position: int
    last: LogPoint

    def cut(self, positions: ByteRange) -> list[memoryview]:
        """What of them lies at these positions of the log."""
        pieces = self.batches
        end_position = positions.end_position - self.last.log_position
        pieces[-1] = pieces[-1][: max(end_position, 0)]
        # They begin in front of what was asked for by so much that all of some may be left out.
        before_bytes = positions.start_position - self.start_log_position
        for number, piece in enumerate(pieces):
            if len(piece) > before_bytes:
                return [piece[max(before_bytes, 0) :], *pieces[number + 1 :]]
            before_bytes -= len(piece)
        return []


class BlockDirectory:
    """An index object, read. Immutable. `name` is the data object's, for errors."""

    def __init__(self, index: BlockIndex, points: LogPoints, *, name: str) -> None:
        self._index = index
        self._points = points
        self._name = name
        self._block_log_positions = [
            points.log_position_of(block.first_entry_id) for block in index.blocks
        ]

    @classmethod
    def decode(cls, content: bytes, *, name: str, index_name: str) -> BlockDirectory:
        """Read an index object that carries log points. CorruptError."""
        index = decode_index(content, name=index_name)
        return cls(index, LogPoints.of(index, name=index_name), name=name)

    @property
    def log_bytes(self) -> int:
        return self._index.metadata.length_bytes

    @property
    def data_bytes(self) -> int:
        return self._index.data_bytes

    def runs(self, positions: ByteRange, known: LogPoint | None = None) -> list[EntryRun]:
        """What to read for these bytes of the log, which end within it: one run in each block.

        `known` is a batch at or below their begin.
        """
        begin = self._points.floor(positions.start_position)
        if known is not None and known.log_position > begin.log_position:
            begin = known
        runs: list[EntryRun] = []
        number = bisect_right(self._block_log_positions, begin.log_position) - 1
        while begin.log_position < positions.end_position:
            runs.append(self._run(number, begin, positions))
            number += 1
            if number == len(self._block_log_positions):
                break
            begin = LogPoint(
                entry_id=self._index.blocks[number].first_entry_id,
                log_position=self._block_log_positions[number],
            )
        return runs

    def batches(self, run: EntryRun, content: bytes) -> BatchSequence:
        """The batches of a run, the first and the last one maybe cut short.

        CorruptError for what cannot be an entry or its batch; the CRC of each whole batch is
        checked, that of one that is cut is its reader's to check.
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
            if end - location >= _FRONT.size:  # the way of nearly all: version 2, unpacked in place
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
        # An entry header may stand in front of each batch up to the next one whose number is known.
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
        """What of the batch at `begin` need not be read; None to read it whole."""
        left_out_bytes = wanted.start_position - begin.log_position
        if left_out_bytes <= 0:
            return None
        following = self._points.ceiling(wanted.start_position) or block_end
        if following.entry_id != begin.entry_id + 1:
            return None
        batch_bytes = following.log_position - begin.log_position
        return CutBatch(left_out_bytes=left_out_bytes, batch_bytes=batch_bytes)

    def _position(self, number: int, point: LogPoint) -> int:
        """Where the entry header of a batch is that is in this block."""
        block = self._index.blocks[number]
        headers_bytes = (point.entry_id - block.first_entry_id) * ENTRY_HEADER_BYTES
        log_bytes = point.log_position - self._block_log_positions[number]
        return block.position + self._index.header_bytes + headers_bytes + log_bytes

    def _block_end(self, number: int) -> LogPoint:
        """Where the log goes on behind a block."""
        following = number + 1
        if following == len(self._block_log_positions):
            return LogPoint(entry_id=self._index.last_entry_id + 1, log_position=self.log_bytes)
        return LogPoint(
            entry_id=self._index.blocks[following].first_entry_id,
            log_position=self._block_log_positions[following],
        )

    def _checked(
        self, run: EntryRun, view: memoryview, location: int, entry_id: int, log_position: int
    ) -> tuple[int, memoryview]:
        """An entry of any kind: its length, and what there is of it. CorruptError."""
        where = run.positions.start_position + location
        if len(view) - location <= ENTRY_HEADER_BYTES:
            raise self._corrupt("entries end early", where, "an entry", "the end of the read")
        length_bytes, found_id = ENTRY_HEADER.unpack_from(view, location)
        left_bytes = run.block_end.log_position - log_position
        if not 0 < length_bytes <= left_bytes:
            raise self._corrupt("entry length", where, f"1..{left_bytes}", length_bytes)
        if found_id != entry_id or entry_id >= run.block_end.entry_id:
            raise self._corrupt("another entry", where + 4, entry_id, found_id)
        begin = location + ENTRY_HEADER_BYTES
        batch = view[begin : begin + length_bytes]
        if len(batch) >= LOG_OVERHEAD_BYTES:
            (rest_bytes,) = _BATCH_LENGTH.unpack_from(batch)
            if rest_bytes + LOG_OVERHEAD_BYTES != length_bytes:
                expected = rest_bytes + LOG_OVERHEAD_BYTES
                raise self._corrupt("an entry is not one batch", where, expected, length_bytes)
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
