"""Records where the ledgers of a log begin, while the log is written. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMark:
    """Represents a log position from which the batches are consecutive entries of a ledger.

    `first_entry_id` is the entry id of the batch at the position.
    """

    log_position: int
    ledger_id: int
    first_entry_id: int


class LedgerMarks:
    """Represents the marks of one log, in the order of the log.

    Thread-safe for one writer and one reader: the writer notes a mark before it passes on the bytes
    at the mark's position. A log without marks is one ledger.
    """

    def __init__(self) -> None:
        self._marks: list[LedgerMark] = []

    def note(self, mark: LedgerMark) -> None:
        """Add a mark at or after the last one; it replaces an earlier mark at its position."""
        self._marks.append(mark)

    def at(self, number: int) -> LedgerMark | None:
        """Return a mark by its number, counted from 0; None if it was not added yet."""
        return self._marks[number] if number < len(self._marks) else None
