"""Checks the batches of a log that arrives in pieces of any size. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rsm.segment.batches.batch_carry import BatchCarry
from rsm.segment.batches.batch_checks import NO_END, RunEnd, check_batch, check_run
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.batches.expectations import BatchExpectation
from rsm.segment.errors import CorruptError


class BatchStream:
    """Checks a log, beginning with the batch at `position`.

    Not thread-safe; unusable after an error. Memory: one batch that crosses pieces, and the run of
    one piece.
    """

    def __init__(
        self,
        expectation: BatchExpectation,
        *,
        position: int = 0,
        next_offset: int,
        until: RunEnd = NO_END,
    ) -> None:
        """End the last run at `until`. The first batch must have no offset below `next_offset`."""
        self._expectation = expectation
        self._position = position
        self._next_offset = next_offset
        self._until = until
        self._carry: BatchCarry | None = None

    @property
    def position(self) -> int:
        """Return the position of the next batch, after the last checked one."""
        return self._position

    @property
    def next_offset(self) -> int:
        """Return the lowest valid offset of the next batch."""
        return self._next_offset

    @property
    def incomplete_bytes(self) -> int:
        """Return the number of buffered bytes of a batch whose end has not arrived."""
        return 0 if self._carry is None else self._carry.buffered_bytes

    def feed(self, piece: bytes | memoryview) -> Iterator[tuple[BatchRun, Sequence[memoryview]]]:
        """Yield the batches that `piece` completes, as runs with their bytes.

        A batch that began in an earlier piece is a run by itself. Keeps no reference to `piece`.
        Yields the batches before an invalid one, and then raises CorruptError.
        """
        view = memoryview(piece)
        while view:
            carry = self._carry or BatchCarry(self._position)
            taken_bytes = carry.take(view)
            if not carry.is_whole:
                carry.own()
                self._carry = carry
                return
            if self._carry is not None:
                self._carry = None
                run = self._begin_run()
                check_batch(run, carry.pieces, self._expectation)
                self._end_run(run)
                yield run, carry.pieces
                carry.clear()
                view = view[taken_bytes:]
                continue
            run = self._begin_run()
            corrupt: CorruptError | None = None
            try:
                check_run(run, view, run.position, self._expectation, self._until)
            except CorruptError as error:
                corrupt = error
            self._end_run(run)
            if len(run):
                yield run, (view,)
            if corrupt is not None:
                raise corrupt
            if not len(run):
                return  # An empty run means that the stream is at `until`.
            view = view[run.end_position - run.position :]

    def _begin_run(self) -> BatchRun:
        return BatchRun(self._position, at_least_offset=self._next_offset)

    def _end_run(self, run: BatchRun) -> None:
        self._position, self._next_offset = run.end_position, run.next_offset
