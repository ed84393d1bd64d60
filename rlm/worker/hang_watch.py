"""Writes the stacks of a hanging process to standard error, and ends the process.

A native library that waits while it has the interpreter's lock stops every thread and every signal
handler, so that no Python thread can notice the hang. The thread of `faulthandler` needs no lock.
As with a JVM, SIGQUIT writes the stacks, and the process normally continues.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_EXTENSIONS = 12  # `extend` moves the deadline at most this often within `hang_ms`


class HangWatch:
    """Represents the deadline after which this process counts as hanging; there is none at first.

    For the main thread.
    """

    def __init__(self, hang_ms: int) -> None:
        self._hang_s = hang_ms / 1000
        self._next_s = 0.0

    def extend(self) -> None:
        """Set the deadline to about `hang_ms` from now.

        When it passes, the process ends with code 1. A process that was frozen for that long ends,
        too.
        """
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._hang_s / _EXTENSIONS
        with suppress(RuntimeError):  # without another thread, there is no deadline
            faulthandler.dump_traceback_later(self._hang_s, exit=True)

    def end_process(self) -> None:
        """Write the stacks, and end with code 1 without any clean-up, which could hang."""
        faulthandler.dump_traceback()
        os._exit(1)


@contextmanager
def hang_watch(hang_ms: int) -> Iterator[HangWatch]:
    """Watch the process within the context. Standard error must be a file descriptor."""
    faulthandler.register(signal.SIGQUIT)
    try:
        yield HangWatch(hang_ms)
    finally:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGQUIT)
