"""The number of the scrub's pass, kept over restarts in the state directory.

The file holds the number and how often that pass was begun, in decimal, with a space between. A
manager without the file begins with any number: one that always began with the same, because its
state directory is lost at each restart, would always read the same segments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from rlm.process.state_dir import write_state

_log = logging.getLogger(__name__)

# A manager that restarts more often than a pass takes must not read the same share forever.
_STARTED_MAX_COUNT = 5
_NUMBER_MAX = 1 << 32


class StoredPassNumber:
    """One thread's. See rlm.tasks.integrity.scrub.PassNumber.

    A file that cannot be used costs nothing but the memory over restarts; it is logged.
    """

    def __init__(self, path: Path, pick: Callable[[int], int]) -> None:
        """`pick` gives any number below the one it is given."""
        self._path = path
        self._number, self._started_count = _read(path) or (pick(_NUMBER_MAX), 0)

    def begin(self) -> int:
        """The same number until that pass has ended, or was begun 5 times."""
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
            extra = {"path": self._path, "error": error}
            _log.info("number of the scrub's pass not kept", extra=extra)


def _read(path: Path) -> tuple[int, int] | None:
    """None if the file is not there, or holds anything else."""
    try:
        number, started_count = (int(each) for each in path.read_text().split())
    except (OSError, ValueError) as error:
        _log.info("no number of a scrub's pass was kept", extra={"path": path, "error": error})
        return None
    return number, started_count
