"""Keeps the number of the scrub's pass across restarts, in the state directory.

The file contains the number and how often that pass was started, in decimal, separated by a space.
If there is no file, a manager starts with a random number. If the state directory does not survive
restarts, a fixed number would make the scrub read the same segments after each restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from rlm.process.state_dir import write_state
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

# Each pass reads a share of the segments. A manager that always restarts before its pass ends must
# still reach the other shares.
_STARTED_MAX_COUNT = 5
_NUMBER_MAX = 1 << 32


class StoredScrubPassNumber:
    """Represents the pass number (rlm.tasks.integrity.scrub.PassNumber). Not thread-safe.

    If the file cannot be read or written, this class logs it, and a restart loses the number.
    """

    def __init__(self, path: Path, pick: Callable[[int], int]) -> None:
        """`pick` returns a random number below its argument."""
        self._path = path
        self._number, self._started_count = _read(path) or (pick(_NUMBER_MAX), 0)

    def begin(self) -> int:
        """Return the pass number, which stays the same until `end` or for 5 starts."""
        if self._started_count >= _STARTED_MAX_COUNT:
            self._number, self._started_count = self._number + 1, 0
        self._started_count += 1
        self._write()
        return self._number

    def end(self) -> None:
        """Give the next pass the next number."""
        self._number, self._started_count = self._number + 1, 0
        self._write()

    def _write(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_state(self._path, f"{self._number} {self._started_count}")
        except OSError as error:
            what = "cannot write the number of the scrub's pass"
            _log.info(LogLine(what, path=self._path, error=error))


def _read(path: Path) -> tuple[int, int] | None:
    """Return the file's content; None if it cannot be read or is malformed."""
    try:
        number, started_count = (int(each) for each in path.read_text().split())
    except (OSError, ValueError) as error:
        _log.info(LogLine("cannot read the number of the scrub's pass", path=path, error=error))
        return None
    return number, started_count
