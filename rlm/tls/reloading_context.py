"""Reloads the certificates of a TLS context in use when their files change.

New connections use the current files; open ones keep their certificate. If the files cannot be
used, for example because one is half written, the context stays unchanged.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError
from rsm.segment.log_line import LogLine

_LOOK_INTERVAL_MS = 1_000

_Stamp = tuple[int, int, int] | None
_log = logging.getLogger(__name__)


class ReloadingContext:
    """Represents a TLS context that reloads changed files. Not thread-safe.

    `renewed` is called after each reload with True if it succeeded, else with False.
    """

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Sequence[Path],
        clock: Clock,
        *,
        renewed: Callable[[bool], None],
    ) -> None:
        """Create the first context. Raises InvalidConfigError, as `make` does."""
        self._make = make
        self._files = tuple(files)
        self._clock = clock
        self._renewed = renewed
        self._stamps = self._look()
        self._looked_ms = clock.monotonic_ms()
        self._context = make()

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection. Checks the files at most once a second."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_ms >= _LOOK_INTERVAL_MS:
            self._looked_ms = now_ms
            stamps = self._look()
            if stamps != self._stamps:
                self._stamps = stamps
                self._renew()
        return self._context

    def _renew(self) -> None:
        try:
            self._context = self._make()
        except InvalidConfigError as error:
            what = "cannot use changed certificates: keeping the earlier ones"
            _log.warning(LogLine(what, error=error))
            self._renewed(False)  # noqa: FBT003 - whether it succeeded
            return
        _log.info(LogLine("reloaded changed certificates", files=",".join(map(str, self._files))))
        self._renewed(True)  # noqa: FBT003 - as above

    def _look(self) -> tuple[_Stamp, ...]:
        return tuple(map(_stamp, self._files))


def _stamp(path: Path) -> _Stamp:
    """Return values that change with a file's content; None if it cannot be read. Follows links."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
