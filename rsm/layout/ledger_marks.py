"""LedgerMarks: where in a log its ledgers begin, noted while the log is written. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMark:
    """A position of the log; batches from there on are entries of a ledger, in ascending order.

    `first_entry_id` is the id of the batch at the position.
    """

    log_position: int
    ledger_id: int
    first_entry_id: int


class LedgerMarks:
    """The marks of one log, in its order.

    Thread-safe for one writer and one reader: a mark is noted before the bytes at its position are
    passed on. A log without marks is one ledger.
    """

    def __init__(self) -> None:
        self._marks: list[LedgerMark] = []

    def note(self, mark: LedgerMark) -> None:
        """Add a mark, at or after the last one. Of the marks at one position, the last counts."""
        self._marks.append(mark)

    def at(self, number: int) -> LedgerMark | None:
        """Return the mark of this number, counted from 0; None if it is not noted yet."""
        return self._marks[number] if number < len(self._marks) else None
