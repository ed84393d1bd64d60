"""Encodes a log as a data object in block format v2 while it reads the log's batches.

Each batch is an entry of the ledger that the log's marks name. If there is no mark, the ledger's id
is the base offset of the log's first batch, and entry ids start at 0. The last block has no
padding, so that a small log becomes a small object. Pure.

Memory: one block, or a batch that is larger, and the carry of a batch.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rsm.layout.block_v2.block_stream import BlockStream
from rsm.layout.block_v2.stream_index import StreamedLedger, StreamIndex
from rsm.layout.blocks.batch_runs import AdjoiningBatches, batch_runs
from rsm.layout.blocks.log_points import CUSTOM_KEY, LogPointsBuilder
from rsm.layout.ledger_marks import LedgerMark, LedgerMarks
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import ContentSource, interrupt_of


@dataclass(slots=True, kw_only=True)
class _OpenLedger:
    """The current ledger: the id of its next entry, and where its next log point is due."""

    ledger_id: int
    start_position: int
    points: LogPointsBuilder
    next_entry_id: int = 0
    due_position: int = 0

    def note(self, run: AdjoiningBatches, begin: int, end: int) -> None:
        """Count these batches of a run as entries; add a log point wherever one is due."""
        number = begin
        while True:
            due = self.due_position - run.log_position
            number = bisect_left(run.bounds, due, number, end)
            if number == end:
                break
            log_position = run.log_position + run.bounds[number] - self.start_position
            due_position = self.points.add(
                self.next_entry_id + number - begin, log_position, run.base_offset_of(number)
            )
            self.due_position = self.start_position + due_position
        self.next_entry_id += end - begin


class LedgerStream:
    """Represents `log` as a ContentSource for one pass; each chunk is a block. Not thread-safe.

    The store chooses the parts of an upload. Usually a part is larger than a block, to save
    requests. Readers do not see the parts.

    The pass raises the errors of the log, and:

    - CorruptError if the content is not batches, or if a ledger begins within a batch,
    - InvalidConfigError if ledgers do not ascend, or if entries are not consecutive,
    - UnsupportedError if the log is empty, or if a batch is too large.
    """

    length_bytes = None

    def __init__(self, log: ContentSource, ledgers: LedgerMarks, *, block_bytes: int) -> None:
        self._log = log
        self.interrupt = interrupt_of(log)
        self._marks = ledgers
        self._mark_number = 0
        self._stream = BlockStream(block_bytes=block_bytes)
        self._points: dict[int, LogPointsBuilder] = {}
        self._ledger: _OpenLedger | None = None

    def chunks(self) -> Iterator[memoryview]:
        for run in batch_runs(self._log):
            for ledger, part in self._divided(run):
                for block in self._encode(ledger, part):
                    yield memoryview(block)
        if self._ledger is None:
            raise UnsupportedError("cannot store a segment without batches in layout block_v2")
        for block in self._stream.finish(is_padded=False):
            yield memoryview(block)

    def index(self) -> StreamIndex:
        """Return the index with the log points. Call it only after the pass."""
        index = self._stream.index()
        return replace(index, ledgers=tuple(map(self._with_points, index.ledgers)))

    def _divided(self, run: AdjoiningBatches) -> Iterator[tuple[_OpenLedger, AdjoiningBatches]]:
        """Yield the ledgers of a run, each with its batches.

        If the first mark is not at the log's start, an unmarked ledger begins there.
        """
        ledger = self._ledger
        while (mark := self._marks.at(self._mark_number)) is not None:
            if mark.log_position >= run.end_log_position:
                break
            if mark.log_position != run.log_position:
                divided = run.divided_at(mark.log_position)
                if divided is None:
                    raise CorruptError(
                        "a ledger begins within a batch",
                        ledger_id=mark.ledger_id,
                        position=mark.log_position,
                    )
                before, run = divided
                yield ledger or self._begin_unmarked(before), before
            ledger = self._begin(mark)
            self._mark_number += 1
        yield ledger or self._begin_unmarked(run), run

    def _begin_unmarked(self, run: AdjoiningBatches) -> _OpenLedger:
        mark = LedgerMark(
            log_position=run.log_position, ledger_id=run.base_offset, first_entry_id=0
        )
        return self._begin(mark)

    def _begin(self, mark: LedgerMark) -> _OpenLedger:
        """Begin a ledger, or continue the current one if the mark has its id."""
        ledger = self._ledger
        if ledger is None or ledger.ledger_id != mark.ledger_id:
            points = self._points.setdefault(mark.ledger_id, LogPointsBuilder())
            ledger = _OpenLedger(
                ledger_id=mark.ledger_id, start_position=mark.log_position, points=points
            )
        ledger.next_entry_id = mark.first_entry_id
        self._ledger = ledger
        return ledger

    def _encode(self, ledger: _OpenLedger, run: AdjoiningBatches) -> Iterator[bytearray]:
        """Add a ledger's batches; yield each block when it is complete."""
        stream, bounds = self._stream, run.bounds
        number, end_number = 0, len(bounds) - 1
        while number < end_number:
            ledger_id, entry_id = ledger.ledger_id, ledger.next_entry_id
            count = stream.count_fitting(ledger_id, entry_id, bounds, number)
            if count:
                complete = stream.extend(run.buffer, bounds[number : number + count + 1])
            else:  # This batch begins a block, or `add` refuses it.
                batch = run.buffer[bounds[number] : bounds[number + 1]]
                complete = stream.add(ledger_id, entry_id, batch)
                count, ledger.due_position = 1, run.log_position + bounds[number]
            yield from complete
            ledger.note(run, number, number + count)
            number += count

    def _with_points(self, ledger: StreamedLedger) -> StreamedLedger:
        encoded = b64encode(self._points[ledger.ledger_id].encode()).decode("ascii")
        return replace(ledger, info=replace(ledger.info, properties=((CUSTOM_KEY, encoded),)))
